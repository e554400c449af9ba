/*
 * How a Multi lock is made: its members in one order, the same in every
 * program.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lock/multi.h"
#include "run/client.h"

static int compare_names(const rl_target *a, const rl_target *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int c = memcmp(a->name, b->name, len);
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

/* What the server is, not how its address is spelt; if it does not tell, that.
 */
static int compare_servers(rlock_client *a, rlock_client *b)
{
    if (a == b)
        return 0;
    rl_run x = rl_server_run_read(&a->engine.core.server_run);
    rl_run y = rl_server_run_read(&b->engine.core.server_run);
    if (*x.id && *y.id)
        return strcmp(x.id, y.id);
    int c = strcmp(a->engine.core.server, b->engine.core.server);
    return c ? c : (a > b) - (a < b);
}

/* The global order. Every program has to come to the same one. */
static int compare(const void *left, const void *right)
{
    const rlock *a = ((const rl_member *)left)->lk;
    const rlock *b = ((const rl_member *)right)->lk;
    int c = compare_names(&a->target, &b->target);
    return c ? c : compare_servers(a->client, b->client);
}

/* Two clients of one server lead to the same lock. */
static bool is_same(const rlock *a, const rlock *b)
{
    return compare_names(&a->target, &b->target) == 0 &&
           compare_servers(a->client, b->client) == 0;
}

bool rl_multi_same_name(const rlock *a, const rlock *b)
{
    return compare_names(&a->target, &b->target) == 0;
}

void rl_multi_free(rlock *lk)
{
    rl_multi *m = (rl_multi *)lk;
    /* All of them first: who cancels there goes through all members. */
    for (size_t i = 0; i < m->n; i++)
        rl_client_unfollow(m->member[i].lk->client, &m->member[i].follower);
    for (size_t i = 0; i < m->n; i++)
        rlock_free(m->member[i].lk);
}

/* --- a member's client ---------------------------------------------------- */

rlock_status rl_member_enter(const rlock *lk, int *cancel)
{
    return rl_client_begin(lk->client, cancel);
}

bool rl_member_enter_quietly(const rlock *lk, int *cancel)
{
    return rl_client_enter(lk->client, cancel) == RLOCK_OK;
}

void rl_member_leave(const rlock *lk, int cancel)
{
    rl_client_leave(lk->client, cancel);
}

/* --- the whole ------------------------------------------------------------ */

static rlock_status refuse(size_t position, const char *why)
{
    return rl_error_set(RLOCK_EINVAL, 0, "member %zu %s", position, why);
}

static rlock_status add_member(rl_multi *m, const rlock *lk, size_t position)
{
    for (size_t i = 0; i < m->n; i++) {
        if (is_same(m->member[i].lk, lk))
            return refuse(position, "is the same lock as an earlier one");
    }
    if (m->n == RLOCK_MULTI_MAX)
        return refuse(position, "is one too many");
    rlock *ours = lk->kind->copy(lk);
    if (!ours)
        return RLOCK_ENOMEM;
    m->member[m->n++] =
        (rl_member){.lk = ours, .position = position, .whole = &m->base};
    return RLOCK_OK;
}

/* Adds a member, and stays inside of its client, if RLOCK_OK. */
static rlock_status add(rl_multi *m, rlock *lk, size_t position)
{
    int cancel;
    if (!lk)
        return refuse(position, "is NULL");
    if (lk->kind == &rl_multi_kind) {
        const rl_multi *inner = (const rl_multi *)lk;
        rlock_status s = RLOCK_OK;
        for (size_t i = 0; i < inner->n && s == RLOCK_OK; i++)
            s = add(m, inner->member[i].lk, position);
        return s;
    }
    rlock_status s = rl_client_enter(lk->client, &cancel);
    if (s == RLOCK_ECLOSED)
        return refuse(position, "belongs to a closed client");
    if (s == RLOCK_EFORKED)
        return rl_error_set(s, 0, "member %zu was made before fork()",
                            position);
    s = add_member(m, lk, position);
    if (s != RLOCK_OK)
        rl_member_leave(lk, cancel);
    return s;
}

/* Comparing servers needs their clients open. */
static rlock_status add_all(rl_multi *m, rlock *const locks[], size_t n)
{
    int cancel;
    rlock_status s = RLOCK_OK;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    for (size_t i = 0; i < n && s == RLOCK_OK; i++)
        s = add(m, locks[i], i + 1);
    if (s == RLOCK_OK)
        qsort(m->member, m->n, sizeof *m->member, compare);
    for (size_t i = 0; i < m->n; i++)
        rl_member_leave(m->member[i].lk, PTHREAD_CANCEL_DISABLE);
    pthread_setcancelstate(cancel, NULL);
    return s;
}

static void follow_all(rl_multi *m)
{
    for (size_t i = 0; i < m->n; i++)
        rl_client_follow(m->member[i].lk->client, &m->member[i].follower);
}

rlock_status rlock_multi_new(rlock *const locks[], size_t n, rlock **out)
{
    static const char name[] = "a Multi lock";
    if (!out)
        return rl_null_pointer("out");
    *out = NULL;
    if (!locks || n == 0)
        return rl_error_set(RLOCK_EINVAL, 0, "a Multi lock needs members");
    if (!locks[0])
        return refuse(1, "is NULL");
    rl_multi *m = rl_lock_new(sizeof *m, &rl_multi_kind, locks[0]->client, name,
                              strlen(name), RLOCK_LAYOUT_HASH);
    if (!m)
        return RLOCK_ENOMEM;
    rlock_status s = add_all(m, locks, n);
    if (s != RLOCK_OK) {
        rlock_free(&m->base);
        return s;
    }
    follow_all(m);
    *out = &m->base;
    return RLOCK_OK;
}
