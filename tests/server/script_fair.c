/*
 * The scripts of the fair lock by themselves, as lua/README.md describes them:
 * who stands in line, who is granted the lock, and what becomes of those who are
 * gone.
 */
#include "bells.h"

#define A HOLDER_OF("a")
#define B HOLDER_OF("b")
#define C HOLDER_OF("c")

#define KEYS_OF(n) /* lock, token, tombstone, line, wants, queue */            \
    n " rlock_token:{job} rlock_undone:{job}:x rlock_line:" n                  \
      " rlock_wants:" n " rlock_queue:" n
#define LINE  "rlock_line:{job}"
#define WANTS "rlock_wants:{job}"
#define QUEUE "rlock_queue:{job}"

static redisReply *try_of(bells *p, const char *name, const char *holder,
                          const char *bell, const char *ticket,
                          const char *beat)
{
    return server_cmd(
        p->sv,
        "EVALSHA %s 6 %s rlock_token:{job} rlock_undone:{job}:%s "
        "rlock_line:%s rlock_wants:%s rlock_queue:%s %s 60000 1 "
        "%s %s %s",
        script_sha(RL_SCRIPT_FAIR_ACQUIRE), name, holder + 9,
        *name == '{' ? "{job}{}" : "{job}", *name == '{' ? "{job}{}" : "{job}",
        *name == '{' ? "{job}{}" : "{job}", holder, bell, ticket, beat);
}

static redisReply *stand(bells *p, const char *holder, const char *bell)
{
    return try_of(p, "job", holder, bell, "0", "1000");
}

/* Without a bell, and in the fewest words. */
static redisReply *just_try(bells *p, const char *holder)
{
    return server_cmd(p->sv,
                      "EVALSHA %s 5 job rlock_token:{job} rlock_undone:{job}:x "
                      "%s %s %s 60000",
                      script_sha(RL_SCRIPT_FAIR_ACQUIRE), LINE, WANTS, holder);
}

/* Who waits, as lua/waits.lua tells it of a lock with a line. */
static redisReply *waits(bells *p)
{
    return server_cmd(p->sv, "EVALSHA %s 5 job %s rlock_undone:{job}:who %s %s",
                      script_sha(RL_SCRIPT_WAITS), QUEUE, LINE, WANTS);
}

/* How many clients wait for it, as lua/survey.lua has it. */
static long long waiting(bells *p)
{
    return server_cmd(p->sv, "EVALSHA %s 5 job %s rlock_token:{job} %s %s",
                      script_sha(RL_SCRIPT_SURVEY), QUEUE, LINE, WANTS)
        ->element[5]
        ->integer;
}

static long long release_of(bells *p, const char *name, const char *holder)
{
    const char *in = *name == '{' ? "{job}{}" : "{job}";
    return server_int(p->sv,
                      "EVALSHA %s 6 %s rlock_queue:%s rlock_undone:{job}:%s "
                      "rlock_token:{job} rlock_line:%s rlock_wants:%s %s "
                      "channel",
                      script_sha(RL_SCRIPT_FAIR_RELEASE), name, in, holder + 9,
                      in, in, holder);
}

static long long release(bells *p, const char *holder)
{
    return release_of(p, "job", holder);
}

static void take(bells *p, const char *holder)
{
    EXPECT_INT(just_try(p, holder)->type, REDIS_REPLY_STRING);
}

/* Busy, and so many are before it; is its client new? */
static void expect_stands(const redisReply *r, int rank, int anew)
{
    EXPECT_INT(r->elements, 6);
    EXPECT_INT(r->element[0]->integer, 0);
    EXPECT_INT(r->element[4]->integer, rank);
    EXPECT_INT(r->element[5]->integer, anew);
}

static bool has_it(bells *p, const char *holder)
{
    return server_int(p->sv, "HEXISTS job %s", holder) == 1;
}

/* --- standing ------------------------------------------------------------- */

TEST(script_fair, a_free_lock_is_had_at_once)
{
    bells p = bells_open(NULL);
    EXPECT_INT(stand(&p, A, BELL_OF("1"))->type, REDIS_REPLY_STRING);
    EXPECT_BETWEEN(key_ttl(p.sv, "job"), 50000, 60000);
    EXPECT(!key_exists(p.sv, LINE) && !key_exists(p.sv, WANTS));
    EXPECT_INT(release(&p, A), 1);
    EXPECT(!key_exists(p.sv, "job"));
    bells_close(&p);
}

TEST(script_fair, who_stands_keeps_his_place)
{
    bells p = bells_open(NULL);
    char ticket[32];
    take(&p, A);
    redisReply *r = stand(&p, B, BELL_OF("1"));
    expect_stands(r, 0, 1);
    snprintf(ticket, sizeof ticket, "%s", r->element[2]->str);
    expect_stands(stand(&p, C, BELL_OF("1")), 1, 0);
    r = stand(&p, B, BELL_OF("1")); /* a known ticket counts, not a new one */
    expect_stands(r, 0, 0);
    EXPECT_STR(r->element[2]->str, ticket);
    server_cmd(p.sv, "DEL %s %s", LINE, WANTS);
    expect_stands(stand(&p, C, BELL_OF("2")), 0, 1);
    expect_stands(try_of(&p, "job", B, BELL_OF("1"), ticket, "1000"), 0, 1);
    EXPECT_BETWEEN(key_ttl(p.sv, LINE), 1, 6000);
    EXPECT_BETWEEN(key_ttl(p.sv, WANTS), 1, 6000);
    EXPECT_INT(server_int(p.sv, "ZCARD %s", QUEUE), 2);
    bells_close(&p);
}

/* Were it killed right behind its first try, it would be in there for ever. */
TEST(script_fair, what_is_kept_of_who_stands_ends_by_itself)
{
    bells p = bells_open(NULL);
    take(&p, A);
    expect_stands(stand(&p, B, BELL_OF("1")), 0, 1);
    EXPECT_BETWEEN(key_ttl(p.sv, LINE), 1, 6000);
    EXPECT_BETWEEN(key_ttl(p.sv, WANTS), 1, 6000);
    EXPECT_BETWEEN(key_ttl(p.sv, QUEUE), 1, 6000);
    bells_close(&p);
}

TEST(script_fair, nobody_overtakes_who_stands)
{
    bells p = bells_open(NULL);
    take(&p, A);
    stand(&p, B, "-" BELL_OF("1"));
    server_cmd(p.sv, "DEL job"); /* its lease has run out */
    EXPECT_INT(just_try(&p, C)->element[0]->integer, 0);
    EXPECT(has_it(&p, B) && !has_it(&p, C)); /* who was first has it */
    EXPECT_INT(release(&p, B), 1);
    take(&p, C);
    bells_close(&p);
}

TEST(script_fair, a_level_more_is_counted_and_needs_the_hold)
{
    bells p = bells_open(NULL);
    take(&p, A);
    server_cmd(p.sv, "EVALSHA %s 6 " KEYS_OF("job") " %s 60000 2 %s 0 0",
               script_sha(RL_SCRIPT_FAIR_ACQUIRE), A, "");
    EXPECT_STR(server_str(p.sv, "HGET job %s", A), "2");
    redisReply *r =
        server_cmd(p.sv, "EVALSHA %s 6 " KEYS_OF("job") " %s 60000 2 %s 0 0",
                   script_sha(RL_SCRIPT_FAIR_ACQUIRE), B, "");
    EXPECT_INT(r->element[0]->integer, -1);
    bells_close(&p);
}

/* To the level that is left. */
static long long count_down(bells *p, const char *holder, int level)
{
    return server_int(p->sv,
                      "EVALSHA %s 6 job " QUEUE " rlock_undone:{job}:x "
                      "rlock_token:{job} " LINE " " WANTS " %s channel %d 0",
                      script_sha(RL_SCRIPT_FAIR_RELEASE), holder, level);
}

TEST(script_fair, a_level_less_is_counted_and_needs_the_hold)
{
    bells p = bells_open(NULL);
    take(&p, A);
    server_cmd(p.sv, "HSET job %s 3", A);
    EXPECT_INT(count_down(&p, A, 2), 1);
    EXPECT_STR(server_str(p.sv, "HGET job %s", A), "2");
    EXPECT_INT(count_down(&p, B, 1), 0);
    EXPECT(!has_it(&p, B));
    bells_close(&p);
}

/* --- being granted -------------------------------------------------------- */

TEST(script_fair, a_release_grants_to_the_first_and_tells_it)
{
    bells p = bells_open(NULL);
    char wanted[200];
    take(&p, A);
    stand(&p, B, BELL_OF("1"));
    try_of(&p, "job", C, BELL_OF("2"), "0", "77");
    try_of(&p, "job", B, BELL_OF("1"), "0", "1500");
    EXPECT_INT(release(&p, A), 2);
    EXPECT(has_it(&p, B));
    EXPECT_BETWEEN(key_ttl(p.sv, "job"), 2000, 3000);
    snprintf(wanted, sizeof wanted,
             "1<rlock_grant:" UUID_OF("b") " 1500 %s 3000 job",
             server_str(p.sv, "GET rlock_token:{job}"));
    EXPECT_STR(bells_heard(&p), wanted);
    EXPECT_INT(server_int(p.sv, "ZCARD %s", LINE), 1);
    EXPECT_INT(just_try(&p, B)->type, REDIS_REPLY_STRING); /* it confirms */
    EXPECT_BETWEEN(key_ttl(p.sv, "job"), 50000, 60000);
    EXPECT_INT(release(&p, B), 2);
    EXPECT_CONTAINS(bells_heard(&p), "2<rlock_grant:" UUID_OF("c") " 77 ");
    bells_close(&p);
}

TEST(script_fair, the_largest_beat_of_a_client_counts)
{
    bells p = bells_open(NULL);
    take(&p, A);
    try_of(&p, "job", B, BELL_OF("1"), "0", "1000");
    try_of(&p, "job", C, BELL_OF("1"), "0", "999");
    EXPECT_INT(release(&p, A), 2);
    EXPECT_CONTAINS(bells_heard(&p), UUID_OF("b") " 1000 ");
    bells_close(&p);
}

TEST(script_fair, what_nobody_hears_is_taken_back)
{
    bells p = bells_open(NULL);
    take(&p, A);
    stand(&p, HOLDER_OF("1"), BELL_OF("7")); /* a client that is gone */
    stand(&p, HOLDER_OF("2"), BELL_OF("7"));
    stand(&p, B, BELL_OF("1"));
    EXPECT_INT(release(&p, A), 2);
    EXPECT(has_it(&p, B));
    EXPECT_INT(server_int(p.sv, "HLEN job"), 1);
    EXPECT_CONTAINS(bells_heard(&p), UUID_OF("b"));
    EXPECT(!key_exists(p.sv, LINE));
    EXPECT_INT(server_int(p.sv, "HEXISTS %s =%s", WANTS, BELL_OF("7")), 0);
    bells_close(&p);
}

TEST(script_fair, who_gives_no_sign_of_life_is_dropped)
{
    bells p = bells_open(NULL);
    take(&p, A);
    stand(&p, B, BELL_OF("1"));
    server_cmd(p.sv, "HSET %s =%s %s", WANTS, BELL_OF("1"), "1000 5");
    stand(&p, C, BELL_OF("2"));
    EXPECT_INT(release(&p, A), 2);
    EXPECT(has_it(&p, C) && !has_it(&p, B));
    bells_close(&p);
}

/* Whose client is deaf is granted it all the same, and looks. */
TEST(script_fair, who_hears_nothing_is_not_told)
{
    bells p = bells_open(NULL);
    take(&p, A);
    stand(&p, B, "-" BELL_OF("7"));
    EXPECT_INT(server_int(p.sv, "ZCARD %s", QUEUE), 0);
    EXPECT_INT(release(&p, A), 2);
    EXPECT(has_it(&p, B));
    EXPECT_INT(stand(&p, B, "-" BELL_OF("7"))->type, REDIS_REPLY_STRING);
    bells_close(&p);
}

TEST(script_fair, who_hears_is_told_also_if_another_of_its_client_does_not)
{
    bells p = bells_open(NULL);
    take(&p, A);
    stand(&p, B, BELL_OF("1"));
    stand(&p, C, "-" BELL_OF("1"));
    EXPECT_INT(release(&p, A), 2);
    EXPECT_CONTAINS(bells_heard(&p), UUID_OF("b"));
    bells_close(&p);
}

TEST(script_fair, a_name_and_the_same_in_braces_have_lines_of_their_own)
{
    bells p = bells_open(NULL);
    take(&p, A);
    try_of(&p, "{job}", C, BELL_OF("1"), "0", "1"); /* has it */
    EXPECT_INT(server_int(p.sv, "HEXISTS {job} %s", C), 1);
    try_of(&p, "{job}", B, BELL_OF("2"), "0", "1");
    EXPECT_INT(release(&p, A), 1);
    EXPECT(!key_exists(p.sv, "job"));
    EXPECT_INT(release_of(&p, "{job}", C), 2);
    EXPECT_INT(server_int(p.sv, "HEXISTS {job} %s", B), 1);
    bells_close(&p);
}

/* What it is granted would not be what it asked for. */
static void expect_not_granted(const char *want)
{
    bells p = bells_open(NULL);
    bells_want(&p, want);
    expect_stands(stand(&p, A, BELL_OF("2")), 1, 1);
    EXPECT_INT(release(&p, B), 0);
    EXPECT_INT(just_try(&p, C)->elements, 7);
    EXPECT(!key_exists(p.sv, "job"));
    EXPECT_INT(server_int(p.sv, "ZCARD " LINE), 2);
    bells_close(&p);
}

TEST_CASE(script_fair, who_waits_to_read_is_granted_no_fair_lock,
          expect_not_granted("r"))
TEST_CASE(script_fair, who_waits_to_write_is_granted_no_fair_lock,
          expect_not_granted("w"))
TEST_CASE(script_fair, who_waits_for_permits_is_granted_no_fair_lock,
          expect_not_granted("1"))

/* --- leaving -------------------------------------------------------------- */

TEST(script_fair, who_gives_up_leaves_the_line_and_the_lock)
{
    bells p = bells_open(NULL);
    take(&p, A);
    stand(&p, B, BELL_OF("1"));
    stand(&p, C, BELL_OF("2"));
    EXPECT_INT(release(&p, B), 0);
    EXPECT_INT(server_int(p.sv, "ZCARD %s", LINE), 1);
    EXPECT_INT(server_int(p.sv, "HEXISTS %s %s", WANTS, B), 0);
    EXPECT_INT(release(&p, A), 2);
    EXPECT(has_it(&p, C));         /* and gives up now */
    EXPECT_INT(release(&p, C), 2); /* clients are in the queue yet */
    EXPECT(!key_exists(p.sv, "job") && !key_exists(p.sv, LINE));
    bells_close(&p);
}

TEST(script_fair, with_nobody_in_line_the_queue_is_rung)
{
    bells p = bells_open(NULL);
    take(&p, A);
    server_cmd(p.sv, "ZADD %s 1 %s", QUEUE, BELL_OF("2"));
    EXPECT_INT(release(&p, A), 2);
    EXPECT_STR(bells_heard(&p), "2<job");
    bells_close(&p);
}

/* Not of one that another has at once. */
TEST(script_fair, redissons_clients_are_told_of_a_lock_that_is_free)
{
    bells p = bells_open_at(NULL, BELL_OF("1"), "channel");
    take(&p, A);
    stand(&p, B, BELL_OF("1"));
    EXPECT_INT(release(&p, A), 2);
    EXPECT_CONTAINS(bells_heard(&p), UUID_OF("b"));
    server_cmd(p.sv, "DEL %s", QUEUE);
    EXPECT_INT(release(&p, B), 1);
    EXPECT_STR(bells_heard(&p), "l<0");
    bells_close(&p);
}

TEST(script_fair, a_tombstone_refuses_who_still_comes)
{
    bells p = bells_open(NULL);
    take(&p, A);
    stand(&p, B, BELL_OF("1"));
    EXPECT_INT(server_int(p.sv,
                          "EVALSHA %s 6 job %s rlock_undone:{job}:%s "
                          "rlock_token:{job} %s %s %s channel 0 60000",
                          script_sha(RL_SCRIPT_FAIR_RELEASE), QUEUE, &B[9],
                          LINE, WANTS, B),
               0);
    EXPECT_INT(stand(&p, B, BELL_OF("1"))->element[0]->integer, -2);
    EXPECT(!key_exists(p.sv, LINE));
    bells_close(&p);
}

/* --- what is refused ------------------------------------------------------ */

TEST(script_fair, without_memory_who_waits_stands_and_is_granted_it)
{
    bells p = bells_open(NULL);
    take(&p, A);
    server_cmd(p.sv, "CONFIG SET maxmemory 1");
    expect_stands(stand(&p, B, BELL_OF("1")), 0, 1);
    expect_stands(stand(&p, B, BELL_OF("1")), 0, 0);
    EXPECT_INT(release(&p, A), 2);
    EXPECT(has_it(&p, B));
    EXPECT(key_ttl(p.sv, "job") > 0);
    EXPECT_CONTAINS(bells_heard(&p), UUID_OF("b"));
    EXPECT_INT(release(&p, B), 2); /* its client is in the queue yet */
    EXPECT(!key_exists(p.sv, "job"));
    bells_close(&p);
}

TEST(script_fair, a_lock_that_gets_no_lease_does_not_stay)
{
    bells p = bells_open(NULL);
    server_cmd(p.sv, "ACL SETUSER default -pexpire");
    EXPECT_INT(just_try(&p, A)->type, REDIS_REPLY_ERROR);
    EXPECT(!key_exists(p.sv, "job"));
    bells_close(&p);
}

TEST(script_fair, what_is_no_lock_is_left_alone)
{
    bells p = bells_open(NULL);
    server_cmd(p.sv, "SET job x");
    EXPECT_CONTAINS(stand(&p, A, BELL_OF("1"))->str, "WRONGTYPE");
    EXPECT_STR(server_str(p.sv, "GET job"), "x");
    EXPECT(!key_exists(p.sv, LINE));
    bells_close(&p);
}

static void expect_bad(const char *words)
{
    bells p = bells_open(NULL);
    char call[400];
    snprintf(call, sizeof call, "EVALSHA %s 6 " KEYS_OF("job") " " A " %s",
             script_sha(RL_SCRIPT_FAIR_ACQUIRE), words);
    EXPECT_CONTAINS(server_str(p.sv, call), "ERR rlock: bad");
    EXPECT(!key_exists(p.sv, "job") && !key_exists(p.sv, LINE));
    bells_close(&p);
}

TEST_CASE(script_fair, a_bad_lease_is_refused, expect_bad("0 1 - 0 0"))
TEST_CASE(script_fair, a_bad_level_is_refused, expect_bad("100 x - 0 0"))
TEST_CASE(script_fair, a_bad_ticket_is_refused, expect_bad("100 1 - x 0"))
TEST_CASE(script_fair, a_bad_beat_is_refused, expect_bad("100 1 - 0 1.5"))

/* Thousands of a client that is gone do not keep out who is behind for long. */
TEST(script_fair, many_that_are_gone_are_dropped_call_by_call)
{
    enum { GONE = 600 };
    bells p = bells_open(NULL);
    take(&p, A);
    for (int i = 0; i < GONE; i++)
        server_cmd(p.sv, "ZADD %s %d gone%d", LINE, i, i);
    stand(&p, B, BELL_OF("1"));
    EXPECT_INT(release(&p, A), 2);
    EXPECT_STR(bells_heard(&p), "1<job"); /* by the queue: it may look */
    redisReply *r = stand(&p, B, BELL_OF("1"));
    EXPECT_INT(r->element[1]->integer, 0); /* soon again */
    EXPECT_INT(stand(&p, B, BELL_OF("1"))->type, REDIS_REPLY_STRING);
    bells_close(&p);
}

/* In a cluster a bell has the lock's name in it. */
TEST(script_fair, a_bell_may_have_blanks_in_it)
{
    bells p = bells_open(NULL);
    take(&p, A);
    stand(&p, B, "-rlock_sbell:{a b\tc}:1"); /* deaf: nobody has to hear it */
    EXPECT_INT(release(&p, A), 2);
    EXPECT_STR(server_str(p.sv, "HGET job %s", B), "1");
    bells_close(&p);
}

TEST(script_fair, who_gives_up_leaves_the_line_of_what_is_no_lock_any_more)
{
    bells p = bells_open(NULL);
    take(&p, A);
    stand(&p, B, BELL_OF("1"));
    EXPECT_STR(server_str(p.sv, "SET job other"), "OK");
    EXPECT_CONTAINS(server_str(p.sv,
                               "EVALSHA %s 6 job %s rlock_undone:{job}:%s "
                               "rlock_token:{job} %s %s %s channel",
                               script_sha(RL_SCRIPT_FAIR_RELEASE), QUEUE, &B[9],
                               LINE, WANTS, B),
                    "WRONGTYPE");
    EXPECT(!key_exists(p.sv, LINE));
    EXPECT_INT(server_int(p.sv, "HEXISTS %s %s", WANTS, B), 0);
    bells_close(&p);
}

/* Of each that is gone: its sign of life, and its bell in the queue. */
static void leave_behind(bells *p, int clients)
{
    server_int(p->sv, "EVAL %s 2 %s %s %d",
               "for i = 1, ARGV[1] do "
               "redis.call('HSET', KEYS[1], '=gone' .. i, '5 1') "
               "redis.call('ZADD', KEYS[2], 1, 'gone' .. i) end return 1",
               WANTS, QUEUE, clients);
}

static long long left_behind(bells *p)
{
    return server_int(p->sv, "ZCOUNT %s 1 1", QUEUE);
}

/* Each that comes finds some of them, and leaves none itself: the fewer there
   are, the sooner are the last ones found. */
TEST(script_fair, clients_that_are_gone_leave_nothing_while_others_stand)
{
    enum { GONE = 600, COME = 4000 };
    bells p = bells_open(NULL);
    take(&p, A);
    leave_behind(&p, GONE);
    server_cmd(p.sv, "HSET %s =alive %s", WANTS, "9000000000000 1");
    EXPECT_INT(left_behind(&p), GONE);
    for (int come = 0; left_behind(&p) > 0 && come < COME; come++) {
        expect_stands(stand(&p, B, BELL_OF("1")), 0, 1);
        server_cmd(p.sv, "HDEL %s =%s", WANTS, BELL_OF("1"));
    }
    EXPECT_INT(left_behind(&p), 0);
    EXPECT_INT(server_int(p.sv, "HLEN %s", WANTS), 2); /* what B wants */
    EXPECT_INT(server_int(p.sv, "HEXISTS %s =alive", WANTS), 1);
    bells_close(&p);
}

TEST(script_fair, an_older_try_does_not_say_how_its_client_hears_now)
{
    bells p = bells_open(NULL);
    take(&p, A);
    try_of(&p, "job", B, "-" BELL_OF("1"), "0", "2000");
    try_of(&p, "job", B, BELL_OF("1"), "0", "1000"); /* it has come late */
    EXPECT(strchr(server_str(p.sv, "HGET %s =%s", WANTS, BELL_OF("1")), '-'));
    bells_close(&p);
}

/* --- who waits ------------------------------------------------------------ */

/* The clock, one holder, and so many who wait. */
#define TOLD(waiters) (2 + 3 + 5 * (waiters))

static void expect_told(redisReply *r, int which, const char *bell,
                        const char *holder, long long rank)
{
    redisReply **of = r->element + TOLD(which);
    EXPECT_STR(of[0]->str, bell);
    EXPECT_STR(of[2]->str, holder);
    EXPECT_INT(of[3]->integer, rank);
    EXPECT_STR(of[4]->str, rank < 0 ? "" : "f");
}

/* Also who hears nothing, and is in no queue. */
TEST(script_fair, who_stands_is_told_and_its_client_counts_once)
{
    bells p = bells_open(NULL);
    just_try(&p, A);
    stand(&p, B, BELL_OF("1"));
    stand(&p, C, BELL_OF("1"));
    stand(&p, HOLDER_OF("d"), "-" BELL_OF("2"));
    redisReply *r = waits(&p);
    EXPECT_INT(r->elements, TOLD(3));
    expect_told(r, 0, BELL_OF("1"), B, 0);
    expect_told(r, 1, BELL_OF("1"), C, 1);
    expect_told(r, 2, BELL_OF("2"), HOLDER_OF("d"), 2);
    EXPECT_INT(waiting(&p), 2);
    bells_close(&p);
}

/* Killed, say: whoever asks next drops it. */
TEST(script_fair, whose_client_gives_no_sign_of_life_waits_no_more)
{
    bells p = bells_open(NULL);
    just_try(&p, A);
    stand(&p, B, BELL_OF("1"));
    stand(&p, C, BELL_OF("2"));
    server_cmd(p.sv, "HSET " WANTS " =" BELL_OF("1") " %s", "1000 1000");
    redisReply *r = waits(&p);
    EXPECT_INT(r->elements, TOLD(1));
    expect_told(r, 0, BELL_OF("2"), C, 0);
    EXPECT_INT(waiting(&p), 1);
    bells_close(&p);
}

TEST(script_fair, who_waits_by_a_plain_handle_is_told_behind_the_line)
{
    bells p = bells_open(NULL);
    just_try(&p, A);
    server_int(p.sv, "ZADD " QUEUE " 1000 rlock_bell:plain");
    stand(&p, B, BELL_OF("1"));
    redisReply *r = waits(&p);
    EXPECT_INT(r->elements, TOLD(2));
    expect_told(r, 0, BELL_OF("1"), B, 0);
    expect_told(r, 1, "rlock_bell:plain", "", -1);
    EXPECT_INT(waiting(&p), 2);
    bells_close(&p);
}

/* Nor a queue that is none; but that a right is missing is answered. */
TEST(script_fair, what_is_no_line_tells_of_nobody)
{
    bells p = bells_open(NULL);
    server_cmd(p.sv, "MSET " LINE " x " WANTS " x " QUEUE " x");
    EXPECT_INT(waits(&p)->elements, 2);
    EXPECT_INT(waiting(&p), 0);
    server_cmd(p.sv, "DEL " LINE " " WANTS " " QUEUE);
    just_try(&p, A);
    stand(&p, B, BELL_OF("1"));
    server_cmd(p.sv, "ACL SETUSER default -hget");
    EXPECT_INT(waits(&p)->type, REDIS_REPLY_ERROR);
    bells_close(&p);
}

/* As of a cluster's bells, in which the lock's name is. */
TEST(script_fair, a_bell_with_blanks_is_told_whole)
{
    bells p = bells_open(NULL);
    just_try(&p, A);
    stand(&p, B, "rlock_sbell:{a b\tc}:1");
    EXPECT_INT(waits(&p)->elements, TOLD(1));
    expect_told(waits(&p), 0, "rlock_sbell:{a b\tc}:1", B, 0);
    bells_close(&p);
}
