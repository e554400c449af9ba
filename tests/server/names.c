/*
 * What callers hand in: names of any bytes, and NULL pointers; and the errors
 * that say so.
 */
#include <limits.h>

#include "client.h"

static rlock *lock_n(scene *s, const void *name, size_t len)
{
    rlock *lk = NULL;
    EXPECT_STATUS(rlock_new_n(s->cl, name, len, &lk), RLOCK_OK);
    return lk;
}

static void expect_printable(const char *text)
{
    EXPECT(*text);
    EXPECT(strlen(text) < sizeof((rlock_error *)0)->message);
    for (; *text; text++)
        EXPECT(*text >= ' ' && *text < 127);
}

/*
 * The name is the key, byte for byte, and works through a whole life; shown is
 * how messages write it.
 */
static void expect_lives(const void *name, size_t len, const char *shown)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK); /* the control: a plain name */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock *lk = lock_n(&s, name, len);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "TYPE %b", name, len), "hash");
    EXPECT_INT(server_int(s.sv, "HLEN %b", name, len), 1);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 3); /* and the tokens of both */
    EXPECT_STATUS(rlock_extend(lk, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "EXISTS %b", name, len), 0);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 2);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    expect_printable(message());
    EXPECT_CONTAINS(message(), shown);
    rlock_free(lk);
    scene_stop(&s);
}

#define EXPECT_LIVES(literal, shown)                                           \
    expect_lives(literal, sizeof(literal) - 1, shown)

/* --- names ---------------------------------------------------------------- */

TEST(names, plain_names_are_shown_as_they_are)
{
    EXPECT_LIVES("orders:2024-11", "'orders:2024-11'");
}

TEST(names, fault_100_nul_bytes_are_part_of_a_name)
{
    EXPECT_LIVES("a\0b\0", "a\\x00b\\x00");
}

/* The names have three bytes. */
static void expect_two_locks(const char *name, const char *other)
{
    scene s = scene_start(0, 0);
    rlock *one = lock_n(&s, name, 3), *two = lock_n(&s, other, 3);
    EXPECT_STATUS(rlock_lock(one), RLOCK_OK);
    EXPECT(!rlock_is_held(two));
    EXPECT_STATUS(rlock_lock(two), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 4);
    EXPECT_STATUS(rlock_unlock(one), RLOCK_OK);
    EXPECT(rlock_is_held(two));
    EXPECT_STATUS(rlock_unlock(two), RLOCK_OK);
    rlock_free(one);
    rlock_free(two);
    scene_stop(&s);
}

TEST(names, fault_100_names_that_differ_behind_a_nul_are_two_locks)
{
    expect_two_locks("a-b", "a-c"); /* the control */
    expect_two_locks("a\0b", "a\0c");
}

static void expect_reserved(scene *r, const char *name, const char *prefix)
{
    rlock *lk = r->lk;
    EXPECT_STATUS(rlock_new(r->cl, name, &lk), RLOCK_EINVAL);
    EXPECT(!lk);
    EXPECT_CONTAINS(message(), prefix);
    EXPECT_STATUS(rlock_new_n(r->cl, name, strlen(name), &lk), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_new_ex(r->cl, name, strlen(name), NULL, &lk),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_red_new(&r->cl, 1, name, &lk), RLOCK_EINVAL);
    EXPECT(!lk);
    EXPECT_CONTAINS(message(), prefix);
}

/* A lock of such a name could be what another one keeps its token in. */
TEST(names, prefixes_of_the_librarys_own_keys_are_refused)
{
    scene r = scene_start(0, 0);
    long long before = commands(r.sv);
    expect_reserved(&r, "rlock_token:{victim}", "rlock_token:");
    expect_reserved(&r, "rlock_queue:{victim}", "rlock_queue:");
    expect_reserved(&r, "rlock_undone:{victim}:x", "rlock_undone:");
    expect_reserved(&r, "rlock_bell:x", "rlock_bell:");
    expect_reserved(&r, "rlock_probe:x", "rlock_probe:");
    expect_reserved(&r, "redisson_lock__channel:{victim}",
                    "redisson_lock__channel:");
    EXPECT_INT(commands(r.sv), before + 1);
    scene_stop(&r);
}

TEST(names, fault_100_format_directives_are_just_bytes)
{
    EXPECT_LIVES("%s%n%d%b%%", "'%s%n%d%b%%'");
}

TEST(names, fault_100_line_ends_do_not_reach_the_protocol)
{
    EXPECT_LIVES("a\r\nDEL b\r\n", "a\\x0d\\x0aDEL b\\x0d\\x0a");
}

TEST(names, fault_100_quotes_and_backslashes_are_just_bytes)
{
    EXPECT_LIVES("\"'\\] return 1 --", "\"'\\] return 1 --");
}

TEST(names, fault_100_blanks_are_just_bytes)
{
    EXPECT_LIVES(" a\tb ", " a\\x09b ");
}

TEST(names, fault_100_bytes_above_ascii_are_shown_as_escapes)
{
    EXPECT_LIVES("caf\xc3\xa9\xff\x7f\x01", "caf\\xc3\\xa9\\xff\\x7f\\x01");
}

TEST(names, braces_choose_the_side_keys)
{
    EXPECT_LIVES("{tag}rest", "'{tag}rest'");
    EXPECT_LIVES("a{b", "'a{b'");
    EXPECT_LIVES("a}b", "'a}b'");
    EXPECT_LIVES("{}", "'{}'");
}

TEST(names, the_longest_name_is_shortened_in_messages)
{
    char name[RLOCK_NAME_MAX + 1];
    memset(name, 'n', sizeof name);
    name[RLOCK_NAME_MAX] = '\0';
    expect_lives(name, RLOCK_NAME_MAX, "nnnnnnnn...");
}

TEST(names, the_longest_binary_name_leaves_room_for_the_cause)
{
    scene s = scene_start(0, 0);
    char name[RLOCK_NAME_MAX];
    memset(name, 0xfe, sizeof name);
    server_cmd(s.sv, "SET %b v", name, sizeof name);
    rlock *lk = lock_n(&s, name, sizeof name);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EWRONGTYPE);
    expect_printable(message());
    EXPECT_CONTAINS(message(), "\\xfe\\xfe");
    EXPECT_CONTAINS(message(), "...");
    EXPECT_CONTAINS(message(), "WRONGTYPE");
    rlock_free(lk);
    scene_stop(&s);
}

static void expect_waiter_woken(const char *name, size_t len)
{
    scene s = scene_start(0, 0);
    rlock_client *other = server_client(s.sv, NULL);
    rlock *mine = lock_n(&s, name, len), *theirs = NULL;
    EXPECT_STATUS(rlock_new_n(other, name, len, &theirs), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(theirs), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(mine, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_force_unlock(mine), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(mine, SOON, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(mine), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(theirs), RLOCK_LOST);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 1);
    rlock_free(mine);
    rlock_free(theirs);
    rlock_client_free(other);
    scene_stop(&s);
}

TEST(names, fault_100_a_waiter_for_a_binary_name_is_woken)
{
    static const char name[] = "a\0{\r\n\xff%n";
    expect_waiter_woken("plain", 5); /* the control */
    expect_waiter_woken(name, sizeof name - 1);
}

TEST(names, events_carry_all_bytes_of_a_name)
{
    scene s = scene_start(0, 0);
    events *ev = events_new();
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_event last;
    events_hook(ev, &opts);
    rlock_client *cl = server_client(s.sv, &opts);
    rlock *lk = NULL;
    EXPECT_STATUS(rlock_new_n(cl, "a\0b", 3, &lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT(events_last(ev, RLOCK_EVENT_ACQUIRED, &last));
    EXPECT_INT(last.name_len, 3);
    EXPECT_INT(memcmp(last.name, "a\0b", 4), 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    events_free(ev);
    scene_stop(&s);
}

TEST(names, the_name_is_copied)
{
    scene s = scene_start(0, 0);
    char name[] = "first";
    rlock *lk = lock_n(&s, name, 5);
    memset(name, 'x', sizeof name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "EXISTS first"), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    scene_stop(&s);
}

static void expect_no_handle(scene *s, const void *name, size_t len)
{
    rlock *lk = s->lk;
    EXPECT_STATUS(rlock_new_n(s->cl, name, len, &lk), RLOCK_EINVAL);
    EXPECT(!lk);
    EXPECT_STATUS(rlock_last_error()->status, RLOCK_EINVAL);
    expect_printable(message());
}

TEST(names, fault_099_empty_and_overlong_names_are_refused)
{
    scene s = scene_start(0, 0);
    char name[RLOCK_NAME_MAX + 2];
    memset(name, 'n', sizeof name);
    name[RLOCK_NAME_MAX + 1] = '\0';
    rlock *lk = s.lk;
    rlock_free(lock_n(&s, name, RLOCK_NAME_MAX)); /* the control */
    long long before = commands(s.sv);
    expect_no_handle(&s, "", 0);
    expect_no_handle(&s, name, RLOCK_NAME_MAX + 1);
    expect_no_handle(&s, name, 64 << 10);
    expect_no_handle(&s, name, 512 << 20);
    expect_no_handle(&s, name, SIZE_MAX);
    EXPECT_STATUS(rlock_new(s.cl, "", &lk), RLOCK_EINVAL);
    EXPECT(!lk);
    lk = s.lk;
    EXPECT_STATUS(rlock_new(s.cl, name, &lk), RLOCK_EINVAL);
    EXPECT(!lk);
    EXPECT_INT(commands(s.sv) - before, 1);
    scene_stop(&s);
}

TEST(names, a_new_handle_asks_no_server)
{
    scene s = scene_start(0, 0);
    long long before = commands(s.sv);
    rlock *lk = test_lock(s.cl, "another");
    rlock_free(lk);
    EXPECT_INT(commands(s.sv) - before, 1);
    scene_stop(&s);
}

/* --- NULL ----------------------------------------------------------------- */

TEST(names, null_arguments_are_refused)
{
    scene s = scene_start(0, 0);
    rlock *lk = s.lk;
    EXPECT_STATUS(rlock_new(NULL, "a", &lk), RLOCK_EINVAL);
    EXPECT(!lk);
    lk = s.lk;
    EXPECT_STATUS(rlock_new(s.cl, NULL, &lk), RLOCK_EINVAL);
    EXPECT(!lk);
    EXPECT_STATUS(rlock_new(s.cl, "a", NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_new_n(s.cl, NULL, 1, &lk), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_lock(NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_trylock(NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_acquire(NULL, 0, 1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_unlock(NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_extend(NULL, 1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_force_unlock(NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_last_error()->status, RLOCK_EINVAL);
    expect_printable(message());
    scene_stop(&s);
}

TEST(names, fault_095_null_can_be_freed_and_canceled)
{
    scene s = scene_start(0, 0);
    rlock_cancel(s.lk);
    scene_stop(&s); /* the control */
    rlock_free(NULL);
    rlock_client_free(NULL);
    rlock_cancel(NULL);
    EXPECT_STATUS(rlock_last_error()->status, RLOCK_OK);
}

/* --- errors --------------------------------------------------------------- */

static intptr_t expect_own_error(void *lk)
{
    EXPECT_STATUS(rlock_last_error()->status, RLOCK_OK);
    EXPECT_STR(message(), "");
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_last_error()->status, RLOCK_NOT_HELD);
    return 0;
}

TEST(names, each_thread_has_its_own_last_error)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, -2, 0), RLOCK_EINVAL);
    char mine[sizeof((rlock_error *)0)->message];
    strcpy(mine, message());
    test_join(test_spawn(expect_own_error, s.lk));
    EXPECT_STATUS(rlock_last_error()->status, RLOCK_EINVAL);
    EXPECT_STR(message(), mine);
    scene_stop(&s);
}

TEST(names, before_the_first_failure_the_last_error_is_empty)
{
    EXPECT(rlock_last_error());
    EXPECT_STATUS(rlock_last_error()->status, RLOCK_OK);
    EXPECT_INT(rlock_last_error()->sys_errno, 0);
    EXPECT_STR(message(), "");
}

TEST(names, a_success_leaves_the_last_error)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_last_error()->status, RLOCK_NOT_HELD);
    scene_stop(&s);
}

/* An error of this thread; what the lock answers then leaves it. */
static rlock_status with_an_error(rlock_status (*verb)(rlock *lk), rlock *lk)
{
    EXPECT_STATUS(rlock_lock(NULL), RLOCK_EINVAL);
    rlock_error before = *rlock_last_error();
    rlock_status s = verb(lk);
    EXPECT_STATUS(rlock_last_error()->status, before.status);
    EXPECT_STR(message(), before.message);
    return s;
}

static intptr_t lock_with_an_error(void *lk)
{
    EXPECT_STATUS(with_an_error(rlock_lock, lk), RLOCK_OK);
    return with_an_error(rlock_unlock, lk);
}

/* `lk` has the scene's lock as a member, or node, and waits for it. */
static void waits_and_leaves_the_error(scene *s, rlock *lk)
{
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    test_thread *t = test_spawn(lock_with_an_error, lk);
    EVENTUALLY(SOON, queued(s->sv, SCENE_LOCK) == 1);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
}

TEST(names, a_success_of_several_locks_leaves_the_last_error)
{
    scene s = scene_start(0, 0);
    rlock_client *cl = server_client(s.sv, NULL);
    rlock *both, *red;
    rlock *members[] = {test_lock(cl, SCENE_LOCK), test_lock(cl, "other")};
    EXPECT_STATUS(rlock_multi_new(members, 2, &both), RLOCK_OK);
    EXPECT_STATUS(rlock_red_new(&cl, 1, SCENE_LOCK, &red), RLOCK_OK);
    waits_and_leaves_the_error(&s, both);
    waits_and_leaves_the_error(&s, red);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(with_an_error(rlock_force_unlock, both), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    rlock_free(members[0]);
    rlock_free(members[1]);
    rlock_free(both);
    rlock_free(red);
    rlock_client_free(cl);
    scene_stop(&s);
}

TEST(names, every_status_has_a_text_of_its_own)
{
    for (int s = RLOCK_OK; s <= RLOCK_EDEADLK; s++) {
        const char *text = rlock_status_str((rlock_status)s);
        expect_printable(text);
        EXPECT(strcmp(text, rlock_status_str((rlock_status)9999)) != 0);
        for (int t = RLOCK_OK; t < s; t++)
            EXPECT(strcmp(text, rlock_status_str((rlock_status)t)) != 0);
    }
}

TEST(names, unknown_statuses_have_a_text)
{
    static const int unknown[] = {-1, RLOCK_EDEADLK + 1, 255, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        expect_printable(rlock_status_str((rlock_status)unknown[i]));
}

TEST(names, the_version_is_that_of_the_header)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, "%d.%d.%d", RLOCK_VERSION_MAJOR,
             RLOCK_VERSION_MINOR, RLOCK_VERSION_PATCH);
    EXPECT_STR(rlock_version(), wanted);
}
