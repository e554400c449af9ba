/*
 * One server under several addresses: a lock of it is one lock. And one name on
 * several servers.
 */
#include <stdatomic.h>

#include "multi_scene.h"

typedef struct spelling {
    char uri[3][160];
} spelling;

static spelling spell(const server *sv)
{
    spelling s;
    snprintf(s.uri[0], sizeof s.uri[0], "redis://127.0.0.1:%d",
             server_port(sv));
    snprintf(s.uri[1], sizeof s.uri[1], "redis://localhost:%d",
             server_port(sv));
    snprintf(s.uri[2], sizeof s.uri[2], "%s", server_uri(sv));
    return s;
}

static rlock_client *client_at(server *sv, const char *uri)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = uri;
    return server_client(sv, &opts);
}

TEST(multi_same, a_lock_is_refused_twice_whatever_its_server_is_called)
{
    need_host_names();
    server *sv = server_start_tcp(NULL);
    spelling names = spell(sv);
    rlock_client *cl[3];
    rlock *lk[3], *all;
    for (int i = 0; i < 3; i++) {
        cl[i] = client_at(sv, names.uri[i]);
        lk[i] = test_lock(cl[i], SCENE_LOCK);
    }
    for (int i = 0; i < 3; i++) {
        rlock *two[] = {lk[i], lk[(i + 1) % 3]};
        EXPECT_STATUS(rlock_multi_new(two, 2, &all), RLOCK_EINVAL);
        EXPECT_CONTAINS(rlock_last_error()->message, "2");
    }
    for (int i = 0; i < 3; i++) {
        rlock_free(lk[i]);
        rlock_client_free(cl[i]);
    }
    server_stop(sv);
}

/* A program that has two servers, and calls them what it likes. */
typedef struct program {
    rlock_client *cl[2];
    rlock *lk[2], *all;
    atomic_int *inside;
} program;

static program start(server *sv[2], const char *first, const char *second,
                     atomic_int *inside)
{
    program p = {.inside = inside};
    const char *uri[2] = {first, second};
    for (int i = 0; i < 2; i++) {
        p.cl[i] = client_at(sv[i], uri[i]);
        p.lk[i] = test_lock(p.cl[i], SCENE_LOCK);
    }
    EXPECT_STATUS(rlock_multi_new(p.lk, 2, &p.all), RLOCK_OK);
    return p;
}

static void end(program *p)
{
    rlock_free(p->all);
    for (int i = 0; i < 2; i++) {
        rlock_free(p->lk[i]);
        rlock_client_free(p->cl[i]);
    }
}

static intptr_t run(void *arg)
{
    const program *p = arg;
    for (int i = 0; i < 300; i++) {
        EXPECT_STATUS(rlock_acquire(p->all, 8000, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT_INT(atomic_fetch_add(p->inside, 1), 0);
        atomic_fetch_sub(p->inside, 1);
        EXPECT_STATUS(rlock_unlock(p->all), RLOCK_OK);
    }
    return 0;
}

/* By their addresses, each would take another server's first. */
TEST(multi_same, programs_with_other_addresses_do_not_block_each_other)
{
    server *sv[2] = {server_start_tcp(NULL), server_start_tcp(NULL)};
    spelling a = spell(sv[0]), b = spell(sv[1]);
    atomic_int inside = 0;
    program p = start(sv, a.uri[0], b.uri[2], &inside);
    program q = start(sv, a.uri[2], b.uri[0], &inside);
    test_thread *t = test_spawn(run, &p), *u = test_spawn(run, &q);
    test_join(t);
    test_join(u);
    end(&p);
    end(&q);
    server_stop(sv[0]);
    server_stop(sv[1]);
}

/*
 * The order of locks with one name is that of their servers, and a server that
 * restarts has another place in it: whoever kept one for as long as he waits
 * would wait in a circle.
 */
static void expect_nothing_held_while_waiting(multi_scene *m,
                                              rlock_client *cl[2], size_t busy)
{
    server *sv = m->sv[busy];
    take_by_hand(sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(m->all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(sv, SCENE_LOCK, cl[busy]);
    EVENTUALLY(2000, levels(m->sv[!busy], SCENE_LOCK) == 0);
    EXPECT_INT(server_int(sv, "DEL %s", SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
}

TEST(multi_same, whoever_waits_for_a_name_soon_holds_it_on_no_other_server)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    rlock_client *cl[2] = {s.cl, t.cl};
    multi_scene m = {.n = 2, .lk = {s.lk, t.lk}, .sv = {s.sv, t.sv}};
    multi_scene_join(&m);
    for (size_t busy = 0; busy < 2; busy++)
        expect_nothing_held_while_waiting(&m, cl, busy);
    rlock_free(m.all);
    expect_nothing_left(s.sv);
    expect_nothing_left(t.sv);
    scene_stop(&s);
    scene_stop(&t);
}

/*
 * Who waits for one of two is to let go of the other one first, at a server
 * that hangs; meanwhile the client is freed of that which it waits for. True:
 * it was told so.
 */
static bool is_told_of_the_end(bool second)
{
    scene s = scene_start(0, 400), t = scene_start(0, 400);
    scene *wanted = second ? &t : &s, *kept = second ? &s : &t;
    rlock *all;
    take_by_hand(wanted->sv, SCENE_LOCK, 60000);
    EXPECT_STATUS(rlock_multi_new((rlock *[]){s.lk, t.lk}, 2, &all), RLOCK_OK);
    waiter *w = waiter_start(all, 150, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(wanted->cl).waiting_now == 1);
    server_pause(kept->sv);
    EVENTUALLY(SOON, stats_of(wanted->cl).waiting_now == 0);
    rlock_client_free(wanted->cl);
    wanted->cl = NULL;
    rlock_status status = waiter_status(w, NULL);
    EXPECT(status == RLOCK_ECLOSED || status == RLOCK_TIMEOUT);
    server_resume(kept->sv);
    waiter_end(w);
    rlock_free(all);
    scene_stop(&s);
    scene_stop(&t);
    return status == RLOCK_ECLOSED;
}

/* Which of them is kept, their order decides, which is that of their runs. */
TEST(multi_same, a_client_that_was_freed_is_told_when_the_wait_has_run_out)
{
    bool told = false;
    for (int i = 0; i < 40 && !told; i++)
        told = is_told_of_the_end(i % 2);
    EXPECT(told);
}
