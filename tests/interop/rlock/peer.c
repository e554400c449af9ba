/* peer LAYOUT [cluster] PORT...; see checks.py. Several ports: a Red lock. */
#include "../peer.h"

#include <rlock/rlock.h>
#include <stdio.h>
#include <string.h>

static rlock_client *clients[RLOCK_RED_MAX];
static size_t n_clients;
static rlock_layout layout;

/* All handles of a name are the same lock, and a hold outlives its handle. */
static rlock *handle(const char *name)
{
    static rlock *last;
    rlock_lock_options one = RLOCK_LOCK_OPTIONS_INIT;
    rlock_red_options several = RLOCK_RED_OPTIONS_INIT;
    one.layout = several.layout = layout;
    one.fair = strncmp(name, "fair-of-", 8) == 0;
    rlock_free(last);
    if (strncmp(name, "read-of-", 8) == 0)
        rlock_rw_new(clients[0], name + 8, &last, NULL);
    else if (strncmp(name, "write-of-", 9) == 0)
        rlock_rw_new(clients[0], name + 9, NULL, &last);
    else if (n_clients == 1)
        rlock_new_ex(clients[0], name, strlen(name), &one, &last);
    else
        rlock_red_new_ex(clients, n_clients, name, strlen(name), &several,
                         &last);
    return last;
}

static const char *answer(rlock_status status)
{
    switch (status) {
    case RLOCK_OK:
        return "ok";
    case RLOCK_BUSY:
    case RLOCK_TIMEOUT:
        return "busy";
    case RLOCK_NOT_HELD:
    case RLOCK_LOST:
        return "lost";
    default:
        return peer_error(rlock_last_error()->message);
    }
}

static const char *lock(const char *name, int64_t wait, int64_t lease)
{
    return answer(rlock_acquire(handle(name), wait, lease));
}

static const char *unlock(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    return answer(rlock_unlock(handle(name)));
}

static const char *extend(const char *name, int64_t lease, int64_t b)
{
    (void)b;
    return answer(rlock_extend(handle(name), lease));
}

static const char *force(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    rlock_status status = rlock_force_unlock(handle(name));
    return status == RLOCK_NOT_HELD ? "free" : answer(status);
}

static const char *ttl(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    int64_t ms;
    rlock_status status = rlock_ttl(handle(name), &ms);
    return status == RLOCK_OK ? peer_number(ms) : answer(status);
}

static const char *held(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    return rlock_is_held(handle(name)) ? "yes" : "no";
}

static const char *holder(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    static char text[600];
    rlock_holder who;
    rlock_status status = rlock_holder_info(handle(name), &who, sizeof who);
    if (status == RLOCK_NOT_HELD)
        return "free";
    if (status != RLOCK_OK)
        return answer(status);
    snprintf(text, sizeof text, "%lld %s", (long long)who.count, who.raw);
    return text;
}

static rlock_latch *latch(const char *name)
{
    static rlock_latch *last;
    rlock_latch_free(last);
    rlock_latch_new(clients[0], name, &last);
    return last;
}

static const char *set(const char *name, int64_t count, int64_t b)
{
    (void)b;
    return answer(rlock_latch_set(latch(name), count, 0));
}

static const char *down(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    return answer(rlock_latch_count_down(latch(name), 1));
}

static const char *await_it(const char *name, int64_t wait, int64_t b)
{
    (void)b;
    return answer(rlock_latch_wait(latch(name), wait));
}

static const char *left(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    int64_t count;
    rlock_status status = rlock_latch_count(latch(name), &count);
    return status == RLOCK_OK ? peer_number(count) : answer(status);
}

static const char *delete_it(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    rlock_status status = rlock_latch_delete(latch(name));
    return status == RLOCK_NOT_HELD ? "free" : answer(status);
}

#define PERMITS 16

static rlock_permit *taken[PERMITS];
static int n_taken;

static rlock_semaphore *semaphore(const char *name)
{
    static rlock_semaphore *last;
    rlock_semaphore_free(last);
    rlock_semaphore_new(clients[0], name, 0, &last);
    return last;
}

static const char *total(const char *name, int64_t n, int64_t b)
{
    (void)b;
    return answer(rlock_semaphore_add(semaphore(name), n));
}

static const char *take(const char *name, int64_t wait, int64_t lease)
{
    if (n_taken == PERMITS)
        return peer_error("too many permits");
    rlock_status status = rlock_semaphore_acquire(semaphore(name), 1, wait,
                                                  lease, &taken[n_taken]);
    n_taken += status == RLOCK_OK;
    return answer(status);
}

static const char *give(const char *name, int64_t a, int64_t b)
{
    (void)name, (void)a, (void)b;
    if (n_taken == 0)
        return "lost";
    return answer(rlock_permit_release(taken[--n_taken]));
}

static const char *count_free(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    int64_t n;
    rlock_status status = rlock_semaphore_available(semaphore(name), &n);
    return status == RLOCK_OK ? peer_number(n) : answer(status);
}

static const peer_command commands[] = {
    {"lock", lock},       {"unlock", unlock}, {"extend", extend},
    {"force", force},     {"ttl", ttl},       {"held", held},
    {"holder", holder},   {"set", set},       {"down", down},
    {"await", await_it},  {"left", left},     {"delete", delete_it},
    {"total", total},     {"take", take},     {"give", give},
    {"free", count_free}, {NULL, NULL},
};

/* "redisson" is the hash, with an ear for Redisson's channel. */
static const struct {
    const char *word;
    rlock_layout layout;
} layouts[] = {
    {"hash", RLOCK_LAYOUT_HASH},
    {"redisson", RLOCK_LAYOUT_HASH},
    {"string", RLOCK_LAYOUT_STRING},
    {"timestamp", RLOCK_LAYOUT_TIMESTAMP},
};

int main(int argc, char **argv)
{
    size_t i = 0;
    const char *scheme = "redis";
    if (argc > 3 && strcmp(argv[2], "cluster") == 0) {
        scheme = "redis-cluster";
        argv[2] = argv[1];
        argv++, argc--;
    }
    if (argc < 3 || argc > 2 + RLOCK_RED_MAX)
        return 2;
    while (strcmp(argv[1], layouts[i].word) != 0)
        if (++i == sizeof layouts / sizeof *layouts)
            return 2;
    layout = layouts[i].layout;

    for (; n_clients < (size_t)argc - 2; n_clients++) {
        char uri[64];
        snprintf(uri, sizeof uri, "%s://127.0.0.1:%s", scheme,
                 argv[2 + n_clients]);
        rlock_options opts = RLOCK_OPTIONS_INIT;
        opts.uri = uri;
        opts.watchdog_lease_ms = 1500;
        opts.redisson_channel = strcmp(argv[1], "redisson") == 0;
        if (rlock_client_new(&opts, &clients[n_clients]) != RLOCK_OK) {
            fprintf(stderr, "%s\n", rlock_last_error()->message);
            return 1;
        }
    }
    int status = peer_run(commands);
    while (n_clients > 0)
        rlock_client_free(clients[--n_clients]);
    return status;
}
