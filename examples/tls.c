/*
 * tls URI CA [CERTIFICATE KEY]: a lock over TLS.
 *
 * The URI says rediss://, and that is all a program has to change, where the
 * system trusts who has signed the server's certificate. Here the authority is
 * one's own, so it is named; and a server may want a certificate of the client.
 * You see the lock taken, or in words why this server is not spoken to.
 */
#include "example.h"

int main(int argc, char **argv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *client;
    rlock *lock;
    if (argc != 3 && argc != 5)
        fail("usage", "tls URI CA [CERTIFICATE KEY]");
    opts.uri = argv[1];
    opts.tls_ca_file = argv[2];
    if (argc == 5) {
        opts.tls_cert_file = argv[3];
        opts.tls_key_file = argv[4];
    }
    if (rlock_client_new(&opts, &client) != RLOCK_OK) {
        printf("refused: %s\n", rlock_last_error()->message);
        return 2;
    }
    MUST(rlock_new(client, "example:tls", &lock));
    MUST(rlock_lock(lock));
    printf("locked over TLS: token %" PRIu64 "\n", rlock_token(lock));
    MUST(rlock_unlock(lock));
    rlock_free(lock);
    rlock_client_free(client);
    return 0;
}
