/*
 * Events: every field of each, as event.h has them; and the errno of failures.
 */
#include <errno.h>

#include "other_client.h"

/* How long a wait or a hold is that an event tells of. */
#define HELD_MS 300

typedef struct wanted {
    rlock_event_type type;
    int count;
    int64_t from_ms, to_ms;
    rlock_status status;
    const char *message; /* is in it; "": it is empty */
    const char *owner;
} wanted;

/* The latest of its type, about the scene's lock, with this token. */
static void expect_event(const scene *s, uint64_t token, const wanted *w)
{
    rlock_event ev;
    events_wait(s->ev, w->type, 1, SOON);
    EXPECT(events_last(s->ev, w->type, &ev));
    EXPECT_INT(ev.type, w->type);
    EXPECT_STR(ev.name, SCENE_LOCK);
    EXPECT_INT(ev.name_len, strlen(SCENE_LOCK));
    EXPECT(ev.token == token);
    EXPECT_INT(ev.count, w->count);
    EXPECT_BETWEEN(ev.elapsed_ms, w->from_ms, w->to_ms);
    EXPECT_INT(ev.status, w->status);
    EXPECT_CONTAINS(ev.message, w->message);
    EXPECT(*w->message || !*ev.message);
    EXPECT_STR(ev.owner, w->owner ? w->owner : "");
}

static void expect(const scene *s, uint64_t token, rlock_event_type type,
                   int count, int64_t from_ms, int64_t to_ms)
{
    expect_event(s, token,
                 &(wanted){.type = type,
                           .count = count,
                           .from_ms = from_ms,
                           .to_ms = to_ms,
                           .message = ""});
}

TEST(events, acquired_and_released_tell_their_times)
{
    scene s = scene_start(0, 0);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    expect(&s, token, RLOCK_EVENT_ACQUIRED, 1, 0, test_since_ms(began_ms));
    test_pause_ms(HELD_MS);
    int64_t again_ms = test_now_ms();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect(&s, token, RLOCK_EVENT_ACQUIRED, 2, 0, test_since_ms(again_ms));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect(&s, token, RLOCK_EVENT_RELEASED, 1, HELD_MS,
           test_since_ms(began_ms));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect(&s, token, RLOCK_EVENT_RELEASED, 0, HELD_MS,
           test_since_ms(began_ms));
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_CONTENDED), 0);
    scene_stop(&s);
}

/* Of the whole call, the wait included. */
TEST(events, acquired_after_a_wait_tells_how_long_it_took)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    waiter *w = waiter_start(s.lk, SOON, RLOCK_WATCHDOG);
    expect(&s, 0, RLOCK_EVENT_CONTENDED, 0, 0, 0);
    test_pause_ms(HELD_MS);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    rlock_event ev;
    EXPECT(events_last(s.ev, RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT_BETWEEN(ev.elapsed_ms, HELD_MS, test_since_ms(began_ms));
    EXPECT(ev.token > 0 && ev.count == 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(events, renewed_and_renew_failed_tell_the_hold_and_the_cause)
{
    scene s = scene_held_proxied(BRISK_MS, 0);
    uint64_t token = rlock_token(s.lk);
    expect(&s, token, RLOCK_EVENT_RENEWED, 1, 0, 0);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    expect_event(&s, token,
                 &(wanted){.type = RLOCK_EVENT_RENEW_FAILED,
                           .count = 1,
                           .status = RLOCK_EIO,
                           .message = proxy_uri(s.px)});
    proxy_refuse(s.px, false);
    events_wait(s.ev, RLOCK_EVENT_RECONNECTED, 1, SOON);
    EXPECT_STR(events_message(s.ev, RLOCK_EVENT_RECONNECTED), proxy_uri(s.px));
    rlock_event ev;
    EXPECT(events_last(s.ev, RLOCK_EVENT_RECONNECTED, &ev));
    EXPECT(!*ev.name && ev.name_len == 0 && ev.token == 0 && ev.count == 0);
    EXPECT(ev.status == RLOCK_OK && ev.elapsed_ms == 0 && !*ev.owner);
    rlock_unlock(s.lk);
    scene_stop(&s);
}

TEST(events, lost_tells_how_long_it_was_held)
{
    scene s = scene_start(0, 0);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    expect_event(&s, token,
                 &(wanted){.type = RLOCK_EVENT_LOST,
                           .count = 1,
                           .from_ms = 988,
                           .to_ms = test_since_ms(began_ms),
                           .status = RLOCK_LOST,
                           .message = "its lease ran out"});
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

static void lock_as(scene *s, rlock_owner *o)
{
    rlock_owner_set(o);
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    rlock_owner_set(NULL);
}

TEST(events, an_owner_that_is_no_thread_is_named)
{
    scene s = scene_start(BRISK_MS, 0);
    rlock_owner *o;
    EXPECT_STATUS(rlock_owner_new("job 7", &o), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    lock_as(&s, o);
    rlock_event ev;
    EXPECT(events_last(s.ev, RLOCK_EVENT_ACQUIRED, &ev));
    uint64_t token = ev.token;
    EXPECT_STR(ev.owner, "job_7");
    expect_event(&s, token,
                 &(wanted){.type = RLOCK_EVENT_RENEWED,
                           .count = 1,
                           .message = "",
                           .owner = "job_7"});
    rlock_owner_free(o);
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, SOON);
    expect_event(&s, token,
                 &(wanted){.type = RLOCK_EVENT_ABANDONED,
                           .count = 1,
                           .from_ms = BRISK_MS / 3 - 10,
                           .to_ms = test_since_ms(began_ms),
                           .message = "ended while holding it",
                           .owner = "job_7"});
    scene_stop(&s);
}

TEST(events, a_warning_is_told_with_its_cause_and_no_lock)
{
    server *sv = server_start("--maxmemory 100mb --maxmemory-policy "
                              "allkeys-lru");
    rlock_options opts = RLOCK_OPTIONS_INIT;
    scene s = scene_with(sv, &opts);
    rlock_event ev;
    EXPECT(events_last(s.ev, RLOCK_EVENT_WARNING, &ev));
    EXPECT_CONTAINS(ev.message, "allkeys-lru");
    EXPECT(!*ev.name && ev.name_len == 0 && ev.token == 0 && ev.count == 0);
    EXPECT(ev.status == RLOCK_OK && ev.elapsed_ms == 0 && !*ev.owner);
    scene_stop(&s);
}

/* --- errno ---------------------------------------------------------------- */

TEST(events, a_server_that_hangs_is_ETIMEDOUT)
{
    scene s = scene_start(0, 300);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK); /* the control */
    EXPECT_INT(rlock_last_error()->sys_errno, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    server_pause(s.sv);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EXPECT_INT(rlock_last_error()->sys_errno, ETIMEDOUT);
    server_resume(s.sv);
    scene_stop(&s);
}
