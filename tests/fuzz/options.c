/*
 * Names and options, of any content and size. No server is asked: the connect
 * callback of clients that are made here has none to offer, and the client
 * that locks are named with is made beforehand.
 */
#include <rlock/rlock.h>

#include "fuzz.h"
#include "peer.h"
#include "wire/keys.h"

static struct redisContext *no_connection(void *arg)
{
    (void)arg;
    return NULL;
}

static void ignore_event(const rlock_event *ev, void *arg)
{
    (void)ev;
    (void)arg;
}

static void must_explain(rlock_status s)
{
    const rlock_error *e = rlock_last_error();
    MUST(e->status == s && *rlock_status_str(s));
    MUST(memchr(e->message, '\0', sizeof e->message) && *e->message);
}

/* What the header says of the options, in its words. */
static bool is_duration(int64_t ms)
{
    return ms >= 0 && ms <= RLOCK_LEASE_MAX_MS;
}

static bool are_valid(const rlock_options *o, bool size_known)
{
    size_t host_len = o->host_id ? strlen(o->host_id) : 1;
    return size_known && !(o->uri && o->connect) &&
           is_duration(o->connect_timeout_ms) &&
           is_duration(o->command_timeout_ms) &&
           is_duration(o->watchdog_lease_ms) &&
           (o->watchdog_lease_ms == 0 || o->watchdog_lease_ms >= 100) &&
           o->max_hold_ms >= 0 && host_len >= 1 && host_len <= 255;
}

/* Members beyond the given size are as if they were zero. */
static rlock_options known_part(const rlock_options *o)
{
    rlock_options known = {0};
    if (o->size <= sizeof known)
        memcpy(&known, o, o->size);
    return known;
}

/*
 * A size ends where a member ends, as in a program that was built for an
 * earlier version; or it is none. Without a callback the library would look
 * for a server.
 */
static size_t any_size(feed *in, size_t least, size_t whole)
{
    size_t size = (size_t)feed_number(in);
    if (size > 8 && size < least)
        return least;
    return size <= whole ? size / 8 * 8 : size;
}

static void make_client(feed *in)
{
    rlock_client *cl;
    char *uri = feed_choice(in, 4) == 3 ? feed_text(in) : NULL;
    char *host = feed_choice(in, 2) ? feed_text(in) : NULL;
    rlock_options o = {
        .uri = uri,
        .connect = no_connection,
        .connect_timeout_ms = feed_number(in),
        .command_timeout_ms = feed_number(in),
        .watchdog_lease_ms = feed_number(in),
        .max_hold_ms = feed_number(in),
        .pool_size = (unsigned)feed_number(in),
        .host_id = host,
        .on_event = feed_choice(in, 2) ? ignore_event : NULL,
        .redisson_channel = feed_choice(in, 2),
    };
    o.size = any_size(in, offsetof(rlock_options, connect_arg), sizeof o);
    rlock_options known = known_part(&o);
    bool valid = are_valid(&known, o.size >= 8 && o.size <= sizeof o);
    rlock_status s = rlock_client_new(&o, &cl);
    MUST(s == (valid ? RLOCK_EIO : RLOCK_EINVAL) && !cl);
    must_explain(s);
    free(uri);
    free(host);
}

static void must_be_free(rlock *lk)
{
    MUST(!rlock_is_held(lk) && rlock_hold_count(lk) == 0);
    MUST(rlock_valid_ms(lk) == 0 && rlock_token(lk) == 0);
    MUST(rlock_unlock(lk) == RLOCK_NOT_HELD);
    must_explain(RLOCK_NOT_HELD);
}

/* Any bytes are a name, if they are not too many. */
static size_t any_name(feed *in, const uint8_t **name)
{
    size_t len = feed_byte(in) * 4U;
    return feed_bytes(in, len, name);
}

static void name_a_lock(feed *in, rlock_client *cl)
{
    rlock *lk;
    const uint8_t *name;
    rlock_lock_options o = {.layout = (rlock_layout)feed_number(in)};
    o.size = any_size(in, 8, sizeof o);
    size_t len = any_name(in, &name);
    rlock_layout layout = o.size > 8 ? o.layout : RLOCK_LAYOUT_HASH;
    bool valid = o.size >= 8 && o.size <= sizeof o && layout >= 0 &&
                 layout <= RLOCK_LAYOUT_TIMESTAMP && len >= 1 &&
                 len <= RLOCK_NAME_MAX && !rl_name_reserved(name, len);
    rlock_status s = rlock_new_ex(cl, name, len, &o, &lk);
    MUST(s == (valid ? RLOCK_OK : RLOCK_EINVAL) && !lk == !valid);
    if (lk)
        must_be_free(lk);
    else
        must_explain(s);
    rlock_free(lk);
}

/* An acquire that may not even be tried; its message shows the name. */
static void acquire_wrongly(feed *in, rlock_client *cl)
{
    rlock *lk;
    const uint8_t *name;
    size_t len = any_name(in, &name);
    int64_t ms = feed_number(in);
    if (rlock_new_n(cl, name, len, &lk) != RLOCK_OK)
        return;
    if (ms != 0 && (ms < RLOCK_LEASE_MIN_MS || ms > RLOCK_LEASE_MAX_MS)) {
        MUST(rlock_acquire(lk, 0, ms) == RLOCK_EINVAL);
        must_explain(RLOCK_EINVAL);
        MUST(rlock_extend(lk, ms) == RLOCK_EINVAL);
    }
    if (ms < RLOCK_FOREVER)
        MUST(rlock_acquire(lk, ms, 1000) == RLOCK_EINVAL);
    must_be_free(lk);
    rlock_free(lk);
}

/* One name twice is one lock, which cannot be two members. */
static void combine(feed *in, rlock_client *cl)
{
    rlock *lk[3], *multi;
    unsigned seen = 0;
    bool twice = false;
    size_t n = 1 + feed_choice(in, 3);
    for (size_t i = 0; i < n; i++) {
        unsigned which = feed_choice(in, 4);
        char name[] = {(char)('a' + which), '\0'};
        MUST(rlock_new(cl, name, &lk[i]) == RLOCK_OK);
        twice = twice || (seen & 1U << which);
        seen |= 1U << which;
    }
    rlock_status s = rlock_multi_new(lk, n, &multi);
    MUST(s == (twice ? RLOCK_EINVAL : RLOCK_OK) && !multi == twice);
    if (multi)
        must_be_free(multi);
    else
        must_explain(s);
    rlock_free(multi);
    while (n > 0)
        rlock_free(lk[--n]);
}

static rlock_client *client;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    peer *p = peer_start((feed){NULL, 0}, (feed){NULL, 0}, true);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.connect = peer_connect;
    o.connect_arg = peer_door(p);
    MUST(rlock_client_new(&o, &client) == RLOCK_OK);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    feed in = {data, size};
    while (in.left > 0) {
        switch (feed_choice(&in, 4)) {
        case 0:
            make_client(&in);
            break;
        case 1:
            name_a_lock(&in, client);
            break;
        case 2:
            acquire_wrongly(&in, client);
            break;
        case 3:
            combine(&in, client);
            break;
        }
    }
    return 0;
}
