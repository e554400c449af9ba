/* Keys and certificates in files, for tests of TLS. */
#ifndef UNIT_PEM_H
#define UNIT_PEM_H

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "test.h"

static inline FILE *pem_file(const char *name, const char *how)
{
    FILE *out = fopen(name, how);
    EXPECT(out);
    return out;
}

static inline void write_text(const char *name, const char *text)
{
    FILE *out = pem_file(name, "w");
    fputs(text, out);
    fclose(out);
}

static inline EVP_PKEY *make_key_of(int type)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *p = EVP_PKEY_CTX_new_id(type, NULL);
    EXPECT(p && EVP_PKEY_keygen_init(p) == 1);
    if (type == EVP_PKEY_EC)
        EXPECT(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(
                   p, NID_X9_62_prime256v1) == 1);
    EXPECT(EVP_PKEY_keygen(p, &key) == 1);
    EVP_PKEY_CTX_free(p);
    return key;
}

static inline EVP_PKEY *make_key(void)
{
    return make_key_of(EVP_PKEY_ED25519);
}

/* Signed by itself, for localhost and 127.0.0.1. */
static inline X509 *make_certificate(EVP_PKEY *key)
{
    X509 *cert = X509_new();
    X509_EXTENSION *names = X509V3_EXT_conf_nid(
        NULL, NULL, NID_subject_alt_name, (char *)"DNS:localhost,IP:127.0.0.1");
    EXPECT(names && X509_set_version(cert, 2) == 1);
    X509_add_ext(cert, names, -1);
    X509_EXTENSION_free(names);
    X509_gmtime_adj(X509_getm_notBefore(cert), -60);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    EXPECT(X509_sign(cert, key, NULL) > 0);
    return cert;
}

static inline void write_certificate(const char *name, EVP_PKEY *key)
{
    X509 *cert = make_certificate(key);
    FILE *out = pem_file(name, "w");
    EXPECT(PEM_write_X509(out, cert) == 1);
    fclose(out);
    X509_free(cert);
}

static inline void write_key(const char *name, const char *how, EVP_PKEY *key,
                             const char *passphrase)
{
    FILE *out = pem_file(name, how);
    EXPECT(PEM_write_PKCS8PrivateKey(out, key,
                                     passphrase ? EVP_aes_128_cbc() : NULL,
                                     NULL, 0, NULL, (void *)passphrase) == 1);
    fclose(out);
}

#endif
