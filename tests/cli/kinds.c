/*
 * Who may die or stop under -s, -x and -N: it is as under a lock (ends.c), and
 * who waits is let in, or leaves the line.
 */
#include <signal.h>
#include <unistd.h>

#include "pack.h"
#include "scene.h"

#define LINE    "rlock_line:{" SCENE_LOCK "}"
#define PERMITS "{" SCENE_LOCK "}:timeout"

/* -s, -x, and the only permit. */
#define EACH(name)                                                             \
    static void each_##name(const char *kind);                                 \
    TEST_CASE(kinds, name##_who_reads, each_##name("-s"))                      \
    TEST_CASE(kinds, name##_who_writes, each_##name("-x"))                     \
    TEST_CASE(kinds, name##_a_permit, each_##name("-N1"))                      \
    static void each_##name(const char *kind)

/* A counter of permits stays, whoever has them. */
static bool is_held(server *sv, const char *kind)
{
    return kind[1] == 'N' ? server_int(sv, "ZCARD " PERMITS) > 0
                          : key_exists(sv, SCENE_LOCK);
}

/* --- Who dies ------------------------------------------------------------- */

EACH(a_killed_front_takes_all_with_it_and_frees)
{
    pack p = pack_start(kind, "30", pack_of_two);
    EXPECT(is_held(p.sv, kind));
    int64_t began = test_now_ms();
    kill(command_front(p.c), SIGKILL);
    EVENTUALLY(SOON, !is_held(p.sv, kind));
    EXPECT(pack_is_gone(&p));
    EXPECT_BETWEEN(test_since_ms(began), 0, AT_ONCE_MS);
    pack_stop(&p);
}

EACH(a_killed_keeper_takes_all_with_it_and_leaves_the_lease)
{
    pack p = pack_start(kind, "30", pack_of_two);
    int64_t began = test_now_ms();
    kill(command_keeper(p.c), SIGKILL);
    EVENTUALLY(SOON, pack_is_gone(&p));
    EXPECT_BETWEEN(test_since_ms(began), 0, AT_ONCE_MS);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT(is_held(p.sv, kind));
    pack_stop(&p);
}

EACH(the_keeper_ends_what_a_stopped_front_has_started_for)
{
    pack p = pack_start(kind, "1.5", pack_of_two);
    test_lease(1500);
    kill(command_front(p.c), SIGSTOP);
    server_pause(p.sv);
    EVENTUALLY(SOON, pack_is_gone(&p));
    kill(command_front(p.c), SIGCONT);
    EXPECT_INT(command_status(p.c), 123);
    pack_stop(&p);
}

EACH(without_a_server_command_is_told_and_killed)
{
    pack p = pack_start(kind, "6",
                        "trap 'echo told' TERM; sleep 100 & echo $! >\"$1\"; "
                        "echo $$ >\"$2\"; while :; do wait; done");
    test_lease(6000);
    server_pause(p.sv);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT_STR(command_out(p.c), "told\n");
    EXPECT_CONTAINS(command_err(p.c), "'job' was lost, and COMMAND was ended");
    EXPECT(pack_is_gone(&p));
    pack_stop(&p);
}

EACH(what_was_taken_away_ends_command)
{
    pack p = pack_start(kind, "1.5", pack_of_two);
    server_cmd(p.sv, "DEL " SCENE_LOCK " " PERMITS);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT(pack_is_gone(&p));
    pack_stop(&p);
}

EACH(it_stays_until_the_last_of_the_group_has_ended_for)
{
    pack p = pack_start(kind, "3",
                        "sleep 100 & echo $! >\"$1\"; echo $$ >\"$2\"; exit 3");
    test_lease(3000);
    EVENTUALLY(SOON, !process_is_alive(p.command));
    long long calls = script_calls(p.sv);
    EVENTUALLY(SOON, script_calls(p.sv) >= calls + 2); /* it is renewed */
    EXPECT(is_held(p.sv, kind));
    EXPECT(process_is_alive(p.child));
    kill(p.child, SIGKILL);
    EXPECT_INT(command_status(p.c), 3);
    EXPECT(!is_held(p.sv, kind));
    pack_stop(&p);
}

EACH(with_o_it_ends_with_command_for)
{
    server *sv = server_start(NULL);
    command *c =
        RLOCK(sv, "run", kind, "-o", SCENE_LOCK, "-c", "sleep 100 & echo $!");
    EXPECT_INT(command_status(c), 0);
    EXPECT(!is_held(sv, kind));
    pid_t child = (pid_t)atoi(command_out(c));
    EXPECT(process_is_alive(child));
    kill(child, SIGKILL);
    command_free(c);
    server_stop(sv);
}

/* --- Who waits ------------------------------------------------------------ */

/* The only permit, or the write side, is taken; and this one stands in line. */
static command *stand(pack *p, const char *kind)
{
    *p = pack_start(kind[1] == 'N' ? "-N1" : "-x", "30", pack_of_two);
    command *c = RLOCK(p->sv, "run", kind, "-v", SCENE_LOCK, "echo", "ran");
    EVENTUALLY(SOON, server_int(p->sv, "ZCARD " LINE) == 1);
    return c;
}

EACH(an_end_lets_in)
{
    pack p;
    command *c = stand(&p, kind);
    EVENTUALLY(SOON, strstr(command_err(c), "waiting for 'job'"));
    EXPECT_STR(command_out(c), "");
    kill(-p.command, SIGKILL);
    int64_t began = test_now_ms();
    EXPECT_INT(command_status(c), 0);
    EXPECT_BETWEEN(test_since_ms(began), 0, WELL_BEFORE_POLL_MS);
    EXPECT_STR(command_out(c), "ran\n");
    EXPECT_INT(command_status(p.c), 128 + SIGKILL);
    command_free(c);
    pack_stop(&p);
}

EACH(a_signal_takes_out_of_the_line)
{
    pack p;
    command *c = stand(&p, kind);
    kill(command_front(c), SIGTERM);
    EXPECT_INT(command_status(c), -SIGTERM);
    EXPECT_STR(command_out(c), "");
    EXPECT_INT(server_int(p.sv, "ZCARD " LINE), 0);
    command_free(c);
    pack_stop(&p);
}

EACH(a_wait_that_is_over_is_124_for)
{
    pack p = pack_start(kind[1] == 'N' ? "-N1" : "-x", "30", pack_of_two);
    int64_t began = test_now_ms();
    EXPECT_INT(command_end(RLOCK(p.sv, "run", kind, "-n", "job", "true")), 124);
    EXPECT_INT(
        command_end(RLOCK(p.sv, "run", kind, "-w", "0.25", "job", "true")),
        124);
    EXPECT_BETWEEN(test_since_ms(began), 250, SOON / 2);
    EXPECT_INT(server_int(p.sv, "ZCARD " LINE), 0);
    pack_stop(&p);
}
