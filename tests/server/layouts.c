/*
 * Locks that are a string or a timestamp: making one, under which name, and
 * that all verbs work on it as they do on a hash.
 */
#include <stdatomic.h>

#include "layouts.h"

/* --- lock and unlock ----------------------------------------------------- */

BOTH(layouts, unlock_leaves_nothing_but_a_token)
{
    scene s = scene_of_held(layout, 0);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STR(server_str(s.sv, "TYPE " SCENE_LOCK), "string");
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 1);
    EXPECT_INT(server_int(s.sv, "EXISTS rlock_token:{" SCENE_LOCK "}"), 1);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(layouts, a_server_that_lacks_the_scripts_gets_them)
{
    scene s = scene_of(layout, 0);
    EXPECT_STR(server_str(s.sv, "SCRIPT FLUSH"), "OK");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "SCRIPT FLUSH"), "OK");
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    EXPECT(is_locked(s.lk));
    EXPECT_STR(server_str(s.sv, "SCRIPT FLUSH"), "OK");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(layouts, a_nested_acquire_counts_here_and_keeps_the_token)
{
    scene s = scene_of_held(layout, 0);
    uint64_t token = rlock_token(s.lk);
    EXPECT(token > 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 3);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT(held_on_server(s.sv));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    scene_stop(&s);
}

BOTH(layouts, a_second_handle_of_the_client_is_the_same_lock)
{
    scene s = scene_of(layout, 0);
    rlock *again = lock_of(s.cl, layout, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(again), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 2);
    EXPECT(rlock_token(again) == rlock_token(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(again), RLOCK_OK);
    expect_nothing_left(s.sv);
    rlock_free(again);
    scene_stop(&s);
}

BOTH(layouts, another_client_finds_it_busy)
{
    scene s = scene_of(layout, 0);
    other_client b = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    text value = value_of(s.sv);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(b.lk, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_extend(b.lk, 1000), RLOCK_NOT_HELD);
    expect_value(s.sv, value.is);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(layouts, another_thread_finds_it_busy)
{
    scene s = scene_of_held(layout, 0);
    EXPECT_STATUS(on_another_thread(rlock_trylock, s.lk), RLOCK_BUSY);
    EXPECT_STATUS(on_another_thread(rlock_unlock, s.lk), RLOCK_NOT_HELD);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

typedef struct share {
    rlock *lk;
    atomic_int *counter; /* read, then written: the lock makes that one step */
} share;

static intptr_t count_under_the_lock(void *arg)
{
    share *sh = arg;
    for (int i = 0; i < 20; i++) {
        EXPECT_STATUS(rlock_lock(sh->lk), RLOCK_OK);
        EXPECT_STATUS(rlock_lock(sh->lk), RLOCK_OK);
        atomic_store(sh->counter, atomic_load(sh->counter) + 1);
        EXPECT_STATUS(rlock_unlock(sh->lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(sh->lk), RLOCK_OK);
    }
    return 0;
}

BOTH(layouts, threads_of_one_client_and_of_two_take_turns)
{
    scene s = scene_of(layout, 0);
    other_client b = other_client_of(&s, layout);
    atomic_int counter = 0;
    share mine = {s.lk, &counter}, theirs = {b.lk, &counter};
    test_thread *t[6];
    for (int i = 0; i < 6; i++)
        t[i] = test_spawn(count_under_the_lock, i % 2 ? &mine : &theirs);
    for (int i = 0; i < 6; i++)
        test_join(t[i]);
    EXPECT_INT(counter, 120);
    other_client_leave(&b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(layouts, tokens_grow_from_hold_to_hold)
{
    scene s = scene_of(layout, 0);
    other_client b = other_client_of(&s, layout);
    uint64_t last = 0;
    for (int i = 0; i < 50; i++) {
        uint64_t token = token_of_a_hold(i % 2 ? s.lk : b.lk);
        EXPECT(token > last);
        last = token;
    }
    other_client_leave(&b);
    scene_stop(&s);
}

BOTH(layouts, tokens_grow_past_the_last_one_of_a_clock_that_was_ahead)
{
    scene s = scene_of(layout, 0);
    server_cmd(s.sv, "SET rlock_token:{" SCENE_LOCK "} 4000000000000000");
    EXPECT(token_of_a_hold(s.lk) == 4000000000000001);
    EXPECT(token_of_a_hold(s.lk) == 4000000000000002);
    scene_stop(&s);
}

/* --- names --------------------------------------------------------------- */

/* A whole life, with a waiter, under this name. */
static void expect_lives(rlock_layout layout, const void *name, size_t len,
                         const char *token)
{
    scene s = scene_start(0, 0);
    rlock *lk = lock_n(s.cl, layout, name, len);
    rlock_client *cl = server_client(s.sv, NULL);
    rlock *theirs = lock_n(cl, layout, name, len);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "TYPE %b", name, len), "string");
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 2);
    if (token)
        EXPECT_INT(server_int(s.sv, "EXISTS %s", token), 1);
    EXPECT_STATUS(rlock_extend(lk, 60000), RLOCK_OK);
    waiter *w = waiter_start(theirs, RLOCK_FOREVER, 60000);
    EVENTUALLY(SOON, stats_of(cl).waiting_now == 1);
    EVENTUALLY(SOON, server_int(s.sv, "DBSIZE") == 3); /* the queue */
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "EXISTS %b", name, len), 0);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 1);
    rlock_free(theirs);
    rlock_client_free(cl);
    rlock_free(lk);
    scene_stop(&s);
}

BOTH(layouts, a_name_may_have_a_hash_tag)
{
    expect_lives(layout, "a{b}c", 5, "rlock_token:a{b}c");
}

BOTH(layouts, a_name_may_have_a_lone_brace)
{
    expect_lives(layout, "a{b", 3, "rlock_token:a{b");
}

BOTH(layouts, a_name_may_have_any_bytes)
{
    expect_lives(layout, "a\0b\r\n\xff%s \t", 11, NULL);
}

BOTH(layouts, a_name_may_have_512_bytes)
{
    char name[RLOCK_NAME_MAX];
    memset(name, '%', sizeof name);
    expect_lives(layout, name, sizeof name, NULL);
}

/* --- rlock_new_ex -------------------------------------------------------- */

static void expect_refused(rlock_client *cl, const rlock_lock_options *opts,
                           const char *why)
{
    rlock *lk = (rlock *)&lk;
    EXPECT_STATUS(rlock_new_ex(cl, SCENE_LOCK, 3, opts, &lk), RLOCK_EINVAL);
    EXPECT(lk == NULL);
    EXPECT_CONTAINS(rlock_last_error()->message, why);
}

TEST(layouts, an_options_size_out_of_range_is_refused)
{
    scene s = scene_start(0, 0);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1,
                                   sizeof(rlock_lock_options) + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        opts.size = sizes[i];
        expect_refused(s.cl, &opts, "size");
    }
    scene_stop(&s);
}

TEST(layouts, a_layout_out_of_range_is_refused)
{
    scene s = scene_start(0, 0);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    static const int layouts[] = {3, -1, 1000, -2147483647 - 1, 2147483647};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        memcpy(&opts.layout, &layouts[i], sizeof opts.layout);
        expect_refused(s.cl, &opts, "layout");
    }
    scene_stop(&s);
}

/* What was made is the default. */
static void expect_hash(scene *s, const rlock_lock_options *opts)
{
    rlock *lk = NULL;
    EXPECT_STATUS(rlock_new_ex(s->cl, "x", 1, opts, &lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STR(server_str(s->sv, "TYPE x"), "hash");
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
}

TEST(layouts, the_default_is_a_hash)
{
    scene s = scene_start(0, 0);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    expect_hash(&s, NULL);
    expect_hash(&s, &opts);
    scene_stop(&s);
}

TEST(layouts, options_of_an_older_version_mean_a_hash)
{
    scene s = scene_start(0, 0);
    rlock_lock_options opts = {.size = sizeof(size_t),
                               .layout = RLOCK_LAYOUT_STRING};
    expect_hash(&s, &opts);
    scene_stop(&s);
}

TEST(layouts, arguments_of_rlock_new_ex_are_checked)
{
    scene s = scene_start(0, 0);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    char name[RLOCK_NAME_MAX + 1] = "x";
    rlock *lk = (rlock *)name;
    EXPECT_STATUS(rlock_new_ex(s.cl, "x", 1, &opts, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_new_ex(NULL, "x", 1, &opts, &lk), RLOCK_EINVAL);
    EXPECT(lk == NULL);
    EXPECT_STATUS(rlock_new_ex(s.cl, NULL, 1, &opts, &lk), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_new_ex(s.cl, "x", 0, &opts, &lk), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_new_ex(s.cl, name, sizeof name, &opts, &lk),
                  RLOCK_EINVAL);
    EXPECT(lk == NULL);
    scene_stop(&s);
}
