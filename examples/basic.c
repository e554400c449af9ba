/*
 * basic [URI]: four lines of locking.
 *
 * Make a client, name a lock, take it, give it back. You see the lock's
 * fencing token and how long its lease is good for. rlock_lock() waits as long
 * as it must, and the client renews the lease in the background until the
 * unlock, so the work in between may take any time.
 */
#include <inttypes.h>
#include <rlock/rlock.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *client = NULL;
    rlock *lock = NULL;
    rlock_status status;

    opts.uri = argc > 1 ? argv[1] : NULL; /* NULL: redis://127.0.0.1:6379/0 */

    status = rlock_client_new(&opts, &client);
    if (status == RLOCK_OK)
        status = rlock_new(client, "example:basic", &lock);
    if (status == RLOCK_OK)
        status = rlock_lock(lock);
    if (status == RLOCK_OK) {
        printf("locked: token %" PRIu64 ", good for the next %" PRId64 " ms\n",
               rlock_token(lock), rlock_valid_ms(lock));
        printf("... here only one thread of all processes is at work ...\n");
        status = rlock_unlock(lock); /* RLOCK_LOST would be told here */
    }

    if (status == RLOCK_OK)
        printf("unlocked\n");
    else
        fprintf(stderr, "basic: %s: %s\n", rlock_status_str(status),
                rlock_last_error()->message);

    rlock_free(lock); /* both accept NULL */
    rlock_client_free(client);
    return status == RLOCK_OK ? 0 : 1;
}
