/*
 * Servers that speak TLS: an authority of the test's own, the certificates that
 * it signs, and a server that listens with one of them. All is made by
 * openssl(1) in a folder under $TMPDIR. Skips the test where openssl is missing
 * or the server has no TLS.
 */
#ifndef TEST_SUPPORT_SECURE_H
#define TEST_SUPPORT_SECURE_H

#include "server.h"

/*
 * ca: the authority's certificate. server, client: certificates that it has
 * signed, with their keys in "server.key" and "client.key"; the server's is for
 * localhost, redis.test and 127.0.0.1. named: the same without the address.
 * expired: the server's, of yesterday.
 */
typedef struct authority authority;

authority *authority_new(void);
void authority_free(authority *a);
/* Path of one of its files, such as "ca" or "client.key"; valid until free. */
const char *authority_file(const authority *a, const char *name);
/* Makes a key of no certificate, and of another type than theirs. */
const char *authority_rsa_key(const authority *a);

/*
 * The server listens for TLS as well, on a port of 127.0.0.1, with this
 * certificate. clients: whether it wants theirs, "no", "optional" or "yes".
 */
int secure_listen(server *sv, const authority *a, const char *cert,
                  const char *clients);

/* "rediss://host:port"; valid until the calling thread's next call. */
const char *secure_uri(const char *host, int port);

#endif
