/*
 * lost_fd [URI]: a worker waits in poll() for its socket and for the loss of
 * its lock, whichever comes first.
 *
 * Jobs come over a socket, and may stay away for long. rlock_is_held() before
 * each job would be too late for a worker that is waiting: so the descriptor of
 * rlock_lost_fd() stands beside the socket. Here the boss sends three jobs, and
 * then an operator frees the lock by force; the watchdog's next renewal finds
 * it out, and the worker stops though nothing has come over the socket.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"
#include <poll.h>
#include <sys/socket.h>

enum { JOBS = 3 };

/* The other end: another process, mostly. */
static void send_job(int boss)
{
    if (write(boss, "j", 1) != 1)
        fail("write", "the worker is gone");
}

/* Until the lock is lost; how many jobs were done. */
static int work(rlock *lock, int jobs, int boss, rlock *operator)
{
    int done = 0;
    char job;
    struct pollfd p[2] = {{.fd = jobs, .events = POLLIN},
                          {.fd = rlock_lost_fd(lock), .events = POLLIN}};
    if (p[1].fd < 0)
        fail("rlock_lost_fd", rlock_last_error()->message);
    for (;;) {
        if (poll(p, 2, -1) < 0)
            continue; /* a signal */
        if (p[1].revents)
            return done; /* before any other job: somebody else may have it */
        if (p[0].revents && read(jobs, &job, 1) == 1)
            printf("job %d, with token %" PRIu64 "\n", ++done,
                   rlock_token(lock));
        if (done < JOBS)
            send_job(boss);
        else
            MUST(rlock_force_unlock(operator));
    }
}

int main(int argc, char **argv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *client, *other;
    rlock *lock, *operator;
    int ends[2], done;

    print_lines();
    opts.uri = argc > 1 ? argv[1] : NULL;
    opts.watchdog_lease_ms = 900; /* renewed, so looked at, every 300 ms */
    MUST(rlock_client_new(&opts, &client));
    MUST(rlock_new(client, "example:lost_fd", &lock));
    other = new_client(opts.uri);
    MUST(rlock_new(other, "example:lost_fd", &operator));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        fail("socketpair", "no sockets");

    MUST(rlock_lock(lock));
    send_job(ends[1]);
    done = work(lock, ends[0], ends[1], operator);
    printf("the lock is lost after %d jobs\n", done);
    rlock_status status = rlock_unlock(lock); /* closes the descriptor */
    printf("unlock: %s\n", rlock_status_str(status));

    rlock_free(operator);
    rlock_client_free(other);
    rlock_free(lock);
    rlock_client_free(client);
    return status == RLOCK_LOST && done == JOBS ? 0 : 1;
}
