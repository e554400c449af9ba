/*
 * waits [URI]: who waits for whom, and which of them for ever.
 *
 * Two processes hold a lock each, and each waits for the other's. Within one
 * process rlock_lock() would say so (RLOCK_EDEADLK); over two, this program
 * does: it asks the server, prints what it sees, and when the two have been
 * found in a circle, ends them.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <signal.h>

static void print_wait(const rlock_wait *w, void *in_circle)
{
    printf("  %-11s held by ", w->name);
    if (w->holder)
        printf("process %lld, ", (long long)w->holder->pid);
    else
        printf("nobody, ");
    if (w->waiter)
        printf("process %lld", (long long)w->waiter->pid);
    else
        printf("client %.8s", w->client); /* it has just come */
    printf(" has waited for %.1f s", (double)w->waited_ms / 1000);
    printf(w->circle ? ", in circle %u\n" : "\n", w->circle);
    *(int *)in_circle += w->circle > 0;
}

static void hold_and_wait(const char *uri, const char *mine, const char *wanted)
{
    rlock_client *client = new_client(uri);
    rlock *first, *second;
    MUST(rlock_new(client, mine, &first));
    MUST(rlock_new(client, wanted, &second));
    MUST(rlock_acquire(first, 0, 5000));
    sleep_ms(300); /* so that both have what they hold */
    rlock_acquire(second, RLOCK_FOREVER, RLOCK_WATCHDOG);
}

static pid_t start(const char *uri, const char *mine, const char *wanted)
{
    pid_t pid = fork();
    if (pid == 0) {
        hold_and_wait(uri, mine, wanted);
        exit(1); /* it got it: that was no deadlock */
    }
    return pid;
}

int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : NULL;
    print_lines();
    pid_t one = start(uri, "example:hen", "example:egg");
    pid_t two = start(uri, "example:egg", "example:hen");
    rlock_client *client = new_client(uri);

    int in_circle = 0;
    for (int i = 1; i <= 8 && in_circle < 2; i++) {
        sleep_ms(500);
        in_circle = 0;
        printf("after %.1f s\n", i * 0.5);
        MUST(rlock_waits_for(client, print_wait, &in_circle));
    }
    kill(one, SIGKILL);
    kill(two, SIGKILL);
    while (wait(NULL) > 0)
        ;
    rlock_client_free(client);
    return in_circle != 2;
}
