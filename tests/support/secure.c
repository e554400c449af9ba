#include "secure.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *const files[] = {
    "ca",         "ca.key",         "ca.srl",     "server",      "server.key",
    "server.csr", "client",         "client.key", "client.csr",  "named",
    "named.key",  "named.csr",      "expired",    "expired.key", "expired.csr",
    "names",      "index",          "index.attr", "index.old",   "serial",
    "serial.old", "index.attr.old", "config",     "log",         "01.pem",
    "rsa.key"};
enum { FILES = sizeof files / sizeof *files };

struct authority {
    char dir[128];
    char path[FILES][160];
};

/* The first argument is the folder. What fails ends the script. */
static const char script[] =
    "set -eu; cd \"$0\"; exec >log 2>&1\n"
    "key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; }\n"
    "ask() { key $1; openssl req -new -key $1.key -subj /CN=$1 -out $1.csr; }\n"
    "sign() { openssl x509 -req -in $1.csr -CA ca -CAkey ca.key"
    " -CAcreateserial -days 2 -extfile names -extensions $2 -out $1; }\n"
    "printf '%s\\n' '[all]'"
    " 'subjectAltName=DNS:localhost,DNS:redis.test,IP:127.0.0.1'"
    " '[named]' 'subjectAltName=DNS:localhost,DNS:redis.test'"
    " '[client]' 'extendedKeyUsage=clientAuth' >names\n"
    "printf '%s\\n' '[ca]' 'default_ca=c' '[c]' 'database=index'"
    " 'new_certs_dir=.' 'serial=serial' 'default_md=sha256' 'policy=p' '[p]'"
    " 'commonName=supplied' >config\n"
    "key ca; openssl req -x509 -new -key ca.key -days 2 -subj /CN=test -out "
    "ca\n"
    "ask server; sign server all; ask named; sign named named\n"
    "ask client; sign client client\n"
    "ask expired; : >index; echo 01 >serial\n"
    "openssl ca -batch -config config -cert ca -keyfile ca.key -in expired.csr"
    " -startdate 20200101000000Z -enddate 20200102000000Z -extfile names"
    " -extensions all -notext -out expired\n"
    "chmod 644 *\n";

void authority_free(authority *a)
{
    for (size_t i = 0; i < FILES; i++)
        unlink(a->path[i]);
    rmdir(a->dir);
    free(a);
}

authority *authority_new(void)
{
    char command[sizeof script + 200];
    const char *tmp = getenv("TMPDIR");
    authority *a = calloc(1, sizeof *a);
    EXPECT(a);
    snprintf(a->dir, sizeof a->dir, "%.90s/rlock-tls-XXXXXX",
             tmp ? tmp : "/tmp");
    EXPECT(mkdtemp(a->dir));
    for (size_t i = 0; i < FILES; i++)
        snprintf(a->path[i], sizeof a->path[i], "%s/%s", a->dir, files[i]);
    if (system("command -v openssl >/dev/null") != 0) {
        authority_free(a);
        SKIP("openssl is missing");
    }
    FILE *f = fopen(authority_file(a, "log"), "w");
    EXPECT(f);
    fclose(f);
    setenv("RLOCK_TEST_SCRIPT", script, 1);
    snprintf(command, sizeof command, "sh -c \"$RLOCK_TEST_SCRIPT\" '%s'",
             a->dir);
    if (system(command) != 0)
        FAIL("no certificates could be made: see %s/log", a->dir);
    return a;
}

const char *authority_rsa_key(const authority *a)
{
    char command[200];
    const char *key = authority_file(a, "rsa.key");
    snprintf(command, sizeof command, "openssl genrsa -out '%s' 2048 2>%s", key,
             "/dev/null");
    EXPECT(system(command) == 0);
    return key;
}

const char *authority_file(const authority *a, const char *name)
{
    for (size_t i = 0; i < FILES; i++)
        if (strcmp(files[i], name) == 0)
            return a->path[i];
    FAIL("an authority has no %s", name);
}

/* --- servers -------------------------------------------------------------- */

static bool sets(server *sv, const char *option, const char *value)
{
    const redisReply *r = server_cmd(sv, "CONFIG SET %s %s", option, value);
    return r->type == REDIS_REPLY_STATUS;
}

/* Another program may take it first; then it is another one. */
static bool listens(server *sv, int *port)
{
    char text[8];
    *port = server_free_port();
    snprintf(text, sizeof text, "%d", *port);
    return sets(sv, "tls-port", text);
}

int secure_listen(server *sv, const authority *a, const char *cert,
                  const char *clients)
{
    int port;
    char key[16];
    if (!sets(sv, "tls-auth-clients", clients)) {
        server_stop(sv);
        SKIP("the server has no TLS");
    }
    snprintf(key, sizeof key, "%s.key", cert);
    EXPECT(sets(sv, "tls-key-file", authority_file(a, key)));
    EXPECT(sets(sv, "tls-cert-file", authority_file(a, cert)));
    EXPECT(sets(sv, "tls-ca-cert-file", authority_file(a, "ca")));
    EVENTUALLY(SOON, listens(sv, &port));
    return port;
}

const char *secure_uri(const char *host, int port)
{
    static _Thread_local char uri[128];
    snprintf(uri, sizeof uri, "rediss://%s:%d", host, port);
    return uri;
}
