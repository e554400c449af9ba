/*
 * Clients that were used before the first Red lock is made of them: their
 * connections date from when nobody asked which run of its server each of them
 * leads to. Whether such a lock can then be had, judges 7 and 15 say.
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"

#define NAME     "used"
#define SECTIONS 2
#define MOST     4 /* threads at a client */

typedef struct user {
    program *g;
    int home;
} user;

bool used_is(const char *name)
{
    return strncmp(name, NAME, strlen(NAME)) == 0;
}

/* Only in a calm world a client has to be of use. */
static void check(program *g, rlock_status s, int64_t since)
{
    if (s && cfg.calm && !judge_excuses(g, s, since))
        finding("judge 7: in a calm world a client is of no use before Red "
                "locks: %s (%s)",
                rlock_status_str(s), rlock_last_error()->message);
}

static void pass_through(program *g, rlock *lk)
{
    int64_t since = w.now;
    rlock_status s = rlock_acquire(lk, RLOCK_FOREVER, 2000);
    if (s == RLOCK_OK)
        s = rlock_unlock(lk);
    check(g, s, since);
}

static void *use(void *arg)
{
    const user *u = arg;
    rlock *lk = NULL;
    int64_t since = w.now;
    char name[16];
    running->is_library = false;
    snprintf(name, sizeof name, NAME "%d", u->home);
    check(u->g, rlock_new(u->g->client[u->home], name, &lk), since);
    for (int i = 0; lk && i < SECTIONS; i++)
        pass_through(u->g, lk);
    rlock_free(lk);
    return NULL;
}

void use_clients(program *g)
{
    user u[SERVERS_MAX];
    pthread_t t[SERVERS_MAX * MOST];
    int n = 0;
    for (int k = 0; k < cfg.servers; k++) {
        u[k] = (user){g, k};
        for (int i = 0; i < cfg.used && i < MOST; i++)
            t[n++] = program_thread(use, &u[k]);
    }
    while (n > 0)
        pthread_join(t[--n], NULL);
}
