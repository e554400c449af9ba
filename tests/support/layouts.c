#include "layouts.h"

rlock *lock_n(rlock_client *cl, rlock_layout layout, const void *name,
              size_t len)
{
    rlock *lk = NULL;
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    opts.layout = layout;
    EXPECT_STATUS(rlock_new_ex(cl, name, len, &opts, &lk), RLOCK_OK);
    return lk;
}

rlock *lock_of(rlock_client *cl, rlock_layout layout, const char *name)
{
    return lock_n(cl, layout, name, strlen(name));
}

/* --- scenes -------------------------------------------------------------- */

void use_layout(scene *s, rlock_layout layout)
{
    rlock_free(s->lk);
    s->lk = lock_of(s->cl, layout, SCENE_LOCK);
}

scene scene_of(rlock_layout layout, int64_t lease_ms)
{
    scene s = scene_start(lease_ms, 0);
    use_layout(&s, layout);
    return s;
}

scene scene_of_proxied(rlock_layout layout, int64_t lease_ms,
                       int64_t timeout_ms)
{
    scene s = scene_proxied(lease_ms, timeout_ms);
    use_layout(&s, layout);
    return s;
}

scene scene_of_held(rlock_layout layout, int64_t lease_ms)
{
    scene s = scene_of(layout, lease_ms);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    return s;
}

other_client other_client_of(const scene *s, rlock_layout layout)
{
    other_client r = {.cl = server_client(s->sv, NULL)};
    r.lk = lock_of(r.cl, layout, SCENE_LOCK);
    return r;
}

const char *script_of(rlock_layout layout, const char *verb)
{
    char name[64];
    snprintf(name, sizeof name, "%s/%s",
             layout == RLOCK_LAYOUT_STRING ? "string" : "timestamp", verb);
    return proxy_sha(name);
}

/* --- what is there ------------------------------------------------------- */

bool held_on_server(server *sv)
{
    return server_int(sv, "EXISTS " SCENE_LOCK) == 1;
}

text value_of(server *sv)
{
    text t;
    snprintf(t.is, sizeof t.is, "%s", server_str(sv, "GET " SCENE_LOCK));
    return t;
}

void expect_value(server *sv, const char *wanted)
{
    EXPECT_STR(value_of(sv).is, wanted);
}

/* --- the programs that keep their locks like that ------------------------ */

int64_t server_ms(server *sv)
{
    redisReply *r = server_cmd(sv, "TIME");
    EXPECT_INT(r->elements, 2);
    return atoll(r->element[0]->str) * 1000 + atoll(r->element[1]->str) / 1000;
}

text stamp_at(int64_t free_at_ms)
{
    text t;
    snprintf(t.is, sizeof t.is, "%lld.%03lld", (long long)free_at_ms / 1000,
             (long long)free_at_ms % 1000);
    return t;
}

text others_value(server *sv, rlock_layout layout, int64_t lease_ms)
{
    if (layout == RLOCK_LAYOUT_TIMESTAMP)
        return stamp_at(server_ms(sv) + lease_ms);
    return (text){"6f1c0b9e-of-a-program-in-python"};
}

bool others_try(server *sv, rlock_layout layout, const char *value,
                int64_t lease_ms)
{
    if (layout == RLOCK_LAYOUT_TIMESTAMP)
        return server_int(sv, "SETNX " SCENE_LOCK " %s", value) == 1;
    return strcmp(server_str(sv, "SET " SCENE_LOCK " %s NX PX %lld", value,
                             (long long)lease_ms),
                  "OK") == 0;
}

text others_take(server *sv, rlock_layout layout, int64_t lease_ms)
{
    text value = others_value(sv, layout, lease_ms);
    EXPECT(others_try(sv, layout, value.is, lease_ms));
    return value;
}

text others_overwrite(server *sv, rlock_layout layout)
{
    text value = others_value(sv, layout, 60000);
    if (layout == RLOCK_LAYOUT_TIMESTAMP)
        EXPECT(*server_str(sv, "GETSET " SCENE_LOCK " %s", value.is));
    else
        EXPECT_STR(server_str(sv, "SET " SCENE_LOCK " %s PX 60000", value.is),
                   "OK");
    return value;
}

void others_release(server *sv)
{
    EXPECT_INT(server_int(sv, "DEL " SCENE_LOCK), 1);
}

long long seconds_of(const char *value)
{
    char *rest;
    long long seconds = strtoll(value, &rest, 10);
    if (strlen(rest) != 17 || strncmp(rest, ".0", 2) != 0 ||
        strspn(rest + 1, "0123456789") != 16)
        FAIL("\"%s\" is no value of ours", value);
    return seconds;
}

void leave_stamp(server *sv, const char *value)
{
    EXPECT_INT(server_int(sv, "SETNX " SCENE_LOCK " %s", value), 1);
}

/* --- what a lock tells --------------------------------------------------- */

int64_t ttl_of(rlock *lk)
{
    int64_t ms = 0;
    EXPECT_STATUS(rlock_ttl(lk, &ms), RLOCK_OK);
    return ms;
}

bool is_locked(rlock *lk)
{
    bool locked = false;
    EXPECT_STATUS(rlock_is_locked(lk, &locked), RLOCK_OK);
    return locked;
}

int64_t longest(rlock_layout layout, int64_t lease_ms)
{
    return layout == RLOCK_LAYOUT_TIMESTAMP ? lease_ms + 1100 : lease_ms;
}

void expect_lost_once(scene *s)
{
    events_wait(s->ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(!rlock_is_held(s->lk));
    EXPECT_INT(rlock_token(s->lk), 0);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_NOT_HELD);
    EXPECT_INT(stats_of(s->cl).lost, 1);
    EXPECT_INT(events_count(s->ev, RLOCK_EVENT_LOST), 1);
}

void unlock_lost(scene *s)
{
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_LOST);
    expect_lost_once(s);
}

uint64_t token_of_a_hold(rlock *lk)
{
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    uint64_t token = rlock_token(lk);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    return token;
}
