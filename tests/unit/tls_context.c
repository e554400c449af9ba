/* Files for TLS: what is told of each that is of no use, and when they are looked
   at again. */
#include "rlock_config.h"
#include "test.h"

#ifdef RL_HAS_OPENSSL

#include <errno.h>
#include <openssl/err.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/tls_context.h"
#include "pem.h"

static const char *const names[] = {"cert",  "key",    "other", "sealed",
                                    "both",  "broken", "text",  "open",
                                    "curve", "blank"};

/* The test is in a folder with all of them from now on. */
static void make_files(char *dir)
{
    EXPECT(mkdtemp(dir) && chdir(dir) == 0);
    EVP_PKEY *key = make_key(), *other = make_key();
    write_certificate("cert", key);
    write_certificate("both", key);
    write_key("both", "a", key, NULL);
    write_key("key", "w", key, NULL);
    write_key("other", "w", other, NULL);
    write_key("sealed", "w", key, "secret");
    write_key("blank", "w", key, "");
    EVP_PKEY *curve = make_key_of(EVP_PKEY_EC);
    write_key("curve", "w", curve, NULL);
    EVP_PKEY_free(curve);
    write_text("text", "hello\n");
    write_text("broken", "-----BEGIN CERTIFICATE-----\nrubbish\n"
                         "-----BEGIN PRIVATE KEY-----\nrubbish\n");
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
}

static void remove_files(const char *dir)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(names[i]);
    EXPECT(chdir("/") == 0 && rmdir(dir) == 0);
}

static int refuse(struct ssl_ctx_st *ctx, void *arg)
{
    EXPECT(ctx);
    return *(int *)arg;
}

/* Of a file beside the test's, as far as they are named. */
typedef struct options {
    const char *ca_file, *ca_dir, *cert, *key;
    int setup; /* what tls_setup answers; 0: there is none */
} options;

static void init_settings(rl_tls_settings *s, const options *given, int *answer)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    *answer = given->setup;
    o.tls_ca_file = given->ca_file;
    o.tls_ca_dir = given->ca_dir;
    o.tls_cert_file = given->cert;
    o.tls_key_file = given->key;
    o.tls_setup = given->setup ? refuse : NULL;
    o.tls_setup_arg = answer;
    EXPECT(rl_tls_settings_init(s, &o));
}

/* What stands behind ": " is OpenSSL's, in words that change. */
static void expect_text(const char *text, const char *wanted)
{
    size_t n = strlen(wanted);
    if (n > 2 && strcmp(wanted + n - 2, ": ") == 0)
        EXPECT(strncmp(text, wanted, n) == 0 && text[n]);
    else
        EXPECT_STR(text, wanted);
}

/* text: NULL: they are of use; err: what the system has said. */
static void expect_told(options given, int err, const char *text)
{
    char dir[] = "/tmp/rlock-unit-XXXXXX";
    rl_tls_settings s;
    int answer;
    rl_fault f = {.status = RLOCK_OK};
    make_files(dir);
    init_settings(&s, &given, &answer);
    SSL_CTX *ctx = rl_tls_context_new(&s, &f);
    expect_text(f.text, text ? text : "");
    EXPECT_INT(ctx != NULL, text == NULL);
    EXPECT_INT(f.status, text ? RLOCK_EINVAL : RLOCK_OK);
    EXPECT_INT(f.sys_errno, err);
    EXPECT_INT(ERR_peek_error(), 0);
    SSL_CTX_free(ctx);
    rl_tls_settings_fini(&s);
    remove_files(dir);
}

#define NO_FILE "cannot be read: No such file or directory"

#define TOLD(name, err, text, ...)                                             \
    TEST_CASE(tls_context, name,                                               \
              expect_told((options){__VA_ARGS__, .setup = 1}, err, text))

TOLD(authorities_of_its_own_are_of_use, 0, NULL, .ca_file = "cert")
TOLD(a_folder_of_authorities_is_of_use, 0, NULL, .ca_dir = ".")
TOLD(both_are_of_use, 0, NULL, .ca_file = "cert", .ca_dir = ".")
TOLD(authorities_that_are_not_there_are_told, ENOENT,
     "tls_ca_file \"nowhere\" " NO_FILE, .ca_file = "nowhere")
TOLD(a_folder_that_is_not_there_is_told, ENOENT,
     "tls_ca_dir \"nowhere\" " NO_FILE, .ca_dir = "nowhere")
TOLD(a_folder_that_is_none_is_told, EACCES,
     "tls_ca_dir \"text\" cannot be read: Permission denied", .ca_dir = "text")
TOLD(authorities_that_are_none_are_told, 0,
     "tls_ca_file \"text\" has no certificate in PEM", .ca_file = "text")
TOLD(authorities_that_are_broken_are_told, 0,
     "tls_ca_file \"broken\" cannot be used: ", .ca_file = "broken")
TOLD(what_does_not_print_is_shown_in_hexadecimal, ENOENT,
     "tls_ca_file \"a\\x0ab\" " NO_FILE, .ca_file = "a\nb")

TOLD(a_certificate_and_its_key_are_of_use, 0, NULL, .cert = "cert",
     .key = "key")
TOLD(both_in_one_file_are_of_use, 0, NULL, .cert = "both")
TOLD(a_certificate_that_is_not_there_is_told, ENOENT,
     "tls_cert_file \"nowhere\" " NO_FILE, .cert = "nowhere", .key = "key")
TOLD(a_key_that_is_not_there_is_told, ENOENT,
     "tls_key_file \"nowhere\" " NO_FILE, .cert = "cert", .key = "nowhere")
TOLD(a_certificate_that_is_none_is_told, 0,
     "tls_cert_file \"text\" has no certificate in PEM", .cert = "text",
     .key = "key")
TOLD(a_certificate_that_is_broken_is_told, 0,
     "tls_cert_file \"broken\" cannot be used: ", .cert = "broken",
     .key = "key")
TOLD(a_certificate_without_a_key_is_told, 0,
     "tls_cert_file \"cert\" has no private key in PEM, and no tls_key_file is "
     "named",
     .cert = "cert")
TOLD(a_key_that_is_none_is_told, 0,
     "tls_key_file \"text\" has no private key in PEM", .cert = "cert",
     .key = "text")
TOLD(a_key_with_a_passphrase_is_told, 0,
     "tls_key_file \"sealed\" needs a passphrase: tls_setup can load it with "
     "one",
     .cert = "cert", .key = "sealed")
TOLD(a_key_with_a_passphrase_of_no_letters_is_told, 0,
     "tls_key_file \"blank\" needs a passphrase: tls_setup can load it with "
     "one",
     .cert = "cert", .key = "blank")
TOLD(a_key_of_another_certificate_is_told, 0,
     "tls_key_file \"other\" is not the key of the certificate in "
     "tls_cert_file",
     .cert = "cert", .key = "other")
TOLD(a_key_of_another_type_is_told, 0,
     "tls_key_file \"curve\" is not the key of the certificate in "
     "tls_cert_file",
     .cert = "cert", .key = "curve")
TOLD(a_key_that_is_broken_is_told, 0,
     "tls_key_file \"broken\" cannot be used: ", .cert = "cert",
     .key = "broken")
TOLD(a_key_alone_is_told, 0, "tls_key_file without tls_cert_file", .key = "key")

TEST_CASE(tls_context, without_a_setup_it_is_of_use,
          expect_told((options){.ca_file = "cert"}, 0, NULL))
TEST_CASE(tls_context, what_the_program_refuses_is_told,
          expect_told((options){.ca_file = "cert", .setup = 2}, 0,
                      "tls_setup has refused"))

/* --- looked at again ------------------------------------------------------- */

static bool changes_with(const options *given, const char *name)
{
    rl_tls_settings s;
    rl_tls_files before, same, now;
    int answer;
    init_settings(&s, given, &answer);
    rl_tls_files_look(&before, &s);
    rl_tls_files_look(&same, &s);
    EXPECT(rl_tls_files_are(&before, &same));
    write_text(name, "now it is longer than it was before\n");
    rl_tls_files_look(&now, &s);
    rl_tls_settings_fini(&s);
    return !rl_tls_files_are(&before, &now);
}

static void expect_watched(options given, const char *name, bool watched)
{
    char dir[] = "/tmp/rlock-unit-XXXXXX";
    make_files(dir);
    setenv(X509_get_default_cert_file_env(), "text", 1);
    EXPECT_INT(changes_with(&given, name), watched);
    remove_files(dir);
}

#define WATCHED(name, file, watched, ...)                                      \
    TEST_CASE(tls_context, name,                                               \
              expect_watched((options){__VA_ARGS__}, file, watched))

WATCHED(authorities_are_looked_at, "cert", true, .ca_file = "cert")
WATCHED(a_folder_of_authorities_is, "open", true, .ca_dir = ".")
WATCHED(a_certificate_is, "cert", true, .cert = "cert", .key = "key")
WATCHED(a_key_is, "key", true, .cert = "cert", .key = "key")
WATCHED(the_systems_authorities_are, "text", true, .cert = "cert")
WATCHED(the_systems_authorities_are_not_with_others, "text", false,
        .ca_file = "cert")
WATCHED(the_systems_authorities_are_not_with_a_folder, "text", false,
        .ca_dir = ".")
WATCHED(a_file_that_nobody_has_named_is_not, "other", false, .cert = "cert",
        .key = "key")

#endif
