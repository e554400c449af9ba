/*
 * A program with much static thread-local storage. glibc takes it out of each
 * thread's stack, so a small stack would have no room for it, or none besides.
 */
#include "scene.h"

static _Thread_local char much[600 * 1024];

/* The compiler must not leave it out. */
static void use_all(void)
{
    for (volatile char *at = much; at < much + sizeof much; at += 4096)
        *at = 1;
}

TEST(thread_local, renewals_and_events_start_beside_much_of_it)
{
    use_all();
    scene s = scene_start(1000, 0);
    expect_undisturbed(&s);
    scene_stop(&s);
}

TEST(thread_local, a_waiter_is_woken_beside_much_of_it)
{
    use_all();
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 0);
    waiter *w = waiter_start(s.lk, SOON, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t freed_ms = test_now_ms(), at_ms;
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    EXPECT_INT(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT(at_ms >= freed_ms);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_stop(&s);
}

TEST(thread_local, a_host_name_is_looked_up_beside_much_of_it)
{
    use_all();
    need_host_names();
    server *sv = server_start_tcp(NULL);
    char uri[64];
    snprintf(uri, sizeof uri, "redis://localhost:%d", server_port(sv));
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = uri;
    rlock_client *cl = server_client(sv, &opts);
    EXPECT_STATUS(rlock_client_ping(cl), RLOCK_OK);
    rlock_client_free(cl);
    server_stop(sv);
}
