/* Who may die or stop, and what ends COMMAND then: the table of src/doc/run.md,
   row by row. What has to be in time is in exclusion.c. */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pack.h"
#include "scene.h"

/* --- The front --- */

TEST(ends, a_killed_front_takes_all_with_it_before_the_lock_is_free)
{
    pack p = pack_start(NULL, "30", pack_of_two);
    int64_t began = test_now_ms();
    kill(command_front(p.c), SIGKILL);
    EVENTUALLY(SOON, levels(p.sv, SCENE_LOCK) == 0);
    EXPECT(pack_is_gone(&p));
    EXPECT_BETWEEN(test_since_ms(began), 0, AT_ONCE_MS);
    pack_stop(&p);
}

TEST(ends, a_stopped_front_changes_nothing_while_the_lease_is_renewed)
{
    pack p = pack_start(NULL, "3", pack_of_two);
    long long calls = script_calls(p.sv);
    kill(command_front(p.c), SIGSTOP);
    EVENTUALLY(SOON, script_calls(p.sv) >= calls + 4);
    EXPECT(process_is_alive(p.command) && process_is_alive(p.child));
    kill(command_front(p.c), SIGCONT);
    kill(-p.command, SIGKILL);
    EXPECT_INT(command_status(p.c), 128 + SIGKILL);
    pack_stop(&p);
}

TEST(ends, the_keeper_ends_what_a_stopped_front_has_started)
{
    pack p = pack_start(NULL, "1.5", pack_of_two);
    test_lease(1500);
    kill(command_front(p.c), SIGSTOP);
    server_pause(p.sv);
    EVENTUALLY(SOON, pack_is_gone(&p));
    kill(command_front(p.c), SIGCONT);
    EXPECT_INT(command_status(p.c), 123);
    pack_stop(&p);
}

/* --- The keeper --- */

TEST(ends, a_killed_keeper_takes_all_with_it_and_leaves_the_lease)
{
    pack p = pack_start(NULL, "30", pack_of_two);
    int64_t began = test_now_ms();
    kill(command_keeper(p.c), SIGKILL);
    EVENTUALLY(SOON, pack_is_gone(&p));
    EXPECT_BETWEEN(test_since_ms(began), 0, AT_ONCE_MS);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT_INT(levels(p.sv, SCENE_LOCK), 1);
    pack_stop(&p);
}

TEST(ends, a_signal_for_all_of_a_service_does_not_end_the_keeper)
{
    pack p = pack_start(NULL, "30", pack_of_two);
    kill(command_keeper(p.c), SIGTERM);
    kill(command_front(p.c), SIGTERM);
    kill(-p.command, SIGKILL);
    EXPECT_INT(command_status(p.c), 128 + SIGKILL);
    EXPECT_INT(levels(p.sv, SCENE_LOCK), 0);
    pack_stop(&p);
}

TEST(ends, of_front_and_keeper_killed_at_once_the_kernel_ends_command)
{
    pack p = pack_start(NULL, "30", pack_of_two);
    pid_t keeper = command_keeper(p.c);
    kill(keeper, SIGSTOP); /* so that it does nothing any more */
    kill(command_front(p.c), SIGKILL);
    kill(keeper, SIGKILL);
    EVENTUALLY(SOON, !process_is_alive(p.command));
    kill(p.child, SIGKILL);
    pack_stop(&p);
}

TEST(ends, who_was_stopped_while_it_waited_keeps_nothing_and_begins_nothing)
{
    server *sv = server_start(NULL);
    take_by_hand(sv, "job", 0);
    command *c = RLOCK(sv, "run", "-l", "1", "job", "echo", "ran");
    EVENTUALLY(SOON, queued(sv, "job") == 1);
    kill(command_front(c), SIGSTOP);
    server_cmd(sv, "DEL job");
    EVENTUALLY(SOON, levels(sv, "job") == 1);
    EVENTUALLY(SOON, levels(sv, "job") == 0);
    kill(command_front(c), SIGCONT);
    EXPECT_INT(command_status(c), 123);
    EXPECT_STR(command_out(c), "");
    EXPECT_CONTAINS(command_err(c), "was stopped, and did not begin it");
    command_free(c);
    server_stop(sv);
}

/* --- COMMAND --- */

TEST(ends, the_lock_stays_until_the_last_of_the_group_has_ended)
{
    pack p = pack_start(NULL, "3",
                        "sleep 100 & echo $! >\"$1\"; "
                        "echo $$ >\"$2\"; exit 3");
    EVENTUALLY(SOON, !process_is_alive(p.command));
    long long calls = script_calls(p.sv);
    EVENTUALLY(SOON, script_calls(p.sv) >= calls + 3); /* it is renewed */
    EXPECT(process_is_alive(p.child));
    EXPECT_INT(levels(p.sv, SCENE_LOCK), 1);
    EXPECT(!command_ended(p.c));
    kill(p.child, SIGKILL);
    EXPECT_INT(command_status(p.c), 3);
    EXPECT_INT(levels(p.sv, SCENE_LOCK), 0);
    pack_stop(&p);
}

/* Process 1 of a namespace, with the /proc of the one around it. */
static void run_as_number_1(child *c, const server *sv)
{
    command *run = RLOCK(sv, "run", "-l", "1.5", SCENE_LOCK, "sh", "-c",
                         "sleep 100 & echo $! >\"$1\"; exit 3", "sh",
                         command_file(sv, "pid"));
    pid_t last = command_number(sv, "pid");
    child_tell(c, 'r');
    child_expect(c, 'k');
    EXPECT(!command_ended(run));
    kill(last, SIGKILL);
    EXPECT_INT(command_status(run), 3);
    command_free(run);
}

/* Nobody looks for leaks here, as that takes such a /proc, too. */
static void run_among_other_numbers(child *c, void *sv)
{
    int status = -1;
    setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
    if (unshare(CLONE_NEWPID) != 0) {
        child_tell(c, 's');
        return;
    }
    pid_t one = fork();
    if (one == 0) {
        run_as_number_1(c, sv);
        _exit(0);
    }
    EXPECT(one > 0 && waitpid(one, &status, 0) == one);
    _exit(status != 0);
}

TEST(ends, the_last_of_the_group_is_waited_for_also_where_proc_does_not_know_it)
{
    server *sv = server_start(NULL);
    child *c = child_start(run_among_other_numbers, sv);
    if (child_hear(c) == 's')
        SKIP("no right to make a pid namespace here");
    long long calls = script_calls(sv);
    EVENTUALLY(SOON, script_calls(sv) >= calls + 3); /* it is renewed */
    EXPECT_INT(levels(sv, SCENE_LOCK), 1);
    child_tell(c, 'k');
    child_end(c);
    EXPECT_INT(levels(sv, SCENE_LOCK), 0);
    server_stop(sv);
}

TEST(ends, with_o_the_lock_ends_with_command)
{
    server *sv = server_start(NULL);
    command *c =
        RLOCK(sv, "run", "-o", SCENE_LOCK, "-c", "sleep 100 & echo $!");
    EXPECT_INT(command_status(c), 0);
    EXPECT_INT(levels(sv, SCENE_LOCK), 0);
    pid_t child = (pid_t)atoi(command_out(c));
    EXPECT(process_is_alive(child));
    kill(child, SIGKILL);
    command_free(c);
    server_stop(sv);
}

TEST(ends, command_is_told_once_before_it_is_killed)
{
    pack p = pack_start(NULL, "6",
                        "trap 'echo told' TERM; sleep 100 & "
                        "echo $! >\"$1\"; echo $$ >\"$2\"; "
                        "while :; do wait; done");
    test_lease(6000);
    server_pause(p.sv);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT_STR(command_out(p.c), "told\n");
    EXPECT_CONTAINS(command_err(p.c), "rlock: lock 'job' was lost, and COMMAND "
                                      "was ended");
    EXPECT(pack_is_gone(&p));
    pack_stop(&p);
}

TEST(ends, a_command_that_has_stopped_is_made_to_go_on_to_be_told)
{
    pack p = pack_start(NULL, "6",
                        "trap 'echo told; exit 0' TERM; "
                        "echo $$ >\"$1\"; echo $$ >\"$2\"; "
                        "kill -STOP $$; while :; do sleep 0.01; done");
    test_lease(6000);
    EVENTUALLY(SOON, process_is_stopped(p.command));
    server_pause(p.sv);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT_STR(command_out(p.c), "told\n");
    pack_stop(&p);
}

TEST(ends, a_command_that_stops_itself_for_good_is_killed)
{
    pack p = pack_start(NULL, "1.5",
                        "trap 'kill -STOP $$' TERM; echo $$ >\"$1\"; "
                        "echo $$ >\"$2\"; while :; do kill -STOP $$; done");
    server_pause(p.sv);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT(pack_is_gone(&p));
    pack_stop(&p);
}

TEST(ends, who_has_left_the_group_is_ended_with_a_lost_lock)
{
    pack p = pack_start(NULL, "1.5",
                        "setsid sh -c 'trap \"\" TERM; "
                        "echo $$ >\"$1\"; exec sleep 100' sh \"$1\" & "
                        "echo $$ >\"$2\"; wait");
    EXPECT(getsid(p.child) == p.child);
    server_pause(p.sv);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT(pack_is_gone(&p));
    pack_stop(&p);
}

/* A script that becomes rlock has children of its own. */
TEST(ends, a_lost_lock_leaves_children_alone_that_are_not_of_command)
{
    server *sv = server_start(NULL);
    command *c = RLOCK(sv, "run", "outer", "sh", "-c",
                       "sleep 100 & echo $! >\"$1\"; "
                       "exec \"$3\" run -l 1.5 job sh -c "
                       "'echo $$ >\"$1\"; exec sleep 100' sh \"$2\"",
                       "sh", command_file(sv, "other"),
                       command_file(sv, "command"), RLOCK_COMMAND);
    pid_t other = command_number(sv, "other");
    pid_t inner = command_number(sv, "command"), front = command_pid(c);
    EXPECT(process_is_alive(front) && process_is_alive(other));
    server_cmd(sv, "DEL job");
    EVENTUALLY(SOON, !process_is_alive(inner) && !process_is_alive(front));
    EXPECT(process_is_alive(other));
    kill(other, SIGKILL);
    EXPECT_INT(command_status(c), 123);
    command_free(c);
    server_stop(sv);
}

TEST(ends, who_has_left_the_group_keeps_no_lock)
{
    pack p = pack_start(NULL, "30",
                        "setsid sh -c 'echo $$ >\"$1\"; exec sleep 100' "
                        "sh \"$1\" & echo $$ >\"$2\"");
    EXPECT_INT(command_status(p.c), 0);
    EXPECT_INT(levels(p.sv, SCENE_LOCK), 0);
    EXPECT(process_is_alive(p.child));
    kill(p.child, SIGKILL);
    pack_stop(&p);
}

TEST(ends, a_command_that_closes_all_it_has_is_ended_all_the_same)
{
    pack p = pack_start(NULL, "1.5",
                        "trap '' TERM; sleep 100 & echo $! >\"$1\"; "
                        "echo $$ >\"$2\"; exec <&- >&- 2>&-; "
                        "while :; do wait; done");
    server_pause(p.sv);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT(pack_is_gone(&p));
    pack_stop(&p);
}

/* --- In the foreground: no group --- */

/* sleep, in the group of the front. */
static pack in_foreground(const char *lease)
{
    pack p = {.sv = server_start(NULL)};
    p.c = RLOCK(p.sv, "run", "--foreground", "-l", lease, SCENE_LOCK, "sh",
                "-c", "trap '' TERM; echo $$ >\"$0\"; exec sleep 100",
                command_file(p.sv, "command"));
    p.child = p.command = command_number(p.sv, "command");
    EXPECT_INT(getpgid(p.command), getpgid(command_front(p.c)));
    return p;
}

TEST(ends, in_the_foreground_command_ends_in_time)
{
    pack p = in_foreground("1.5");
    server_pause(p.sv);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT(pack_is_gone(&p));
    pack_stop(&p);
}

TEST(ends, in_the_foreground_command_ends_with_the_front)
{
    pack p = in_foreground("30");
    kill(command_front(p.c), SIGKILL);
    EVENTUALLY(SOON, levels(p.sv, SCENE_LOCK) == 0);
    EXPECT(pack_is_gone(&p));
    pack_stop(&p);
}

TEST(ends, in_the_foreground_command_ends_with_the_keeper)
{
    pack p = in_foreground("30");
    kill(command_keeper(p.c), SIGKILL);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT(pack_is_gone(&p));
    pack_stop(&p);
}

TEST(ends, in_the_foreground_a_signal_is_passed_on)
{
    pack p = in_foreground("30");
    kill(command_front(p.c), SIGUSR1);
    EXPECT_INT(command_status(p.c), 128 + SIGUSR1);
    EXPECT_INT(levels(p.sv, SCENE_LOCK), 0);
    pack_stop(&p);
}

/* --- The server --- */

TEST(ends, a_server_that_comes_back_empty_ends_command)
{
    pack p = pack_start(NULL, "3", pack_of_two);
    server_kill(p.sv);
    server_restart(p.sv);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT(pack_is_gone(&p));
    pack_stop(&p);
}

TEST(ends, a_lock_that_was_freed_by_force_ends_command)
{
    pack p = pack_start(NULL, "1.5", pack_of_two);
    server_cmd(p.sv, "DEL %s", SCENE_LOCK);
    EXPECT_INT(command_status(p.c), 123);
    EXPECT(pack_is_gone(&p));
    pack_stop(&p);
}

TEST(ends, a_loss_that_is_found_at_the_end_is_told_all_the_same)
{
    server *sv = server_start(NULL);
    command *c = RLOCK(sv, "run", "job", "redis-cli", "-s", server_path(sv),
                       "del", "job");
    EXPECT_INT(command_status(c), 123);
    EXPECT_CONTAINS(command_err(c), "lock 'job' was lost while COMMAND ran");
    command_free(c);
    server_stop(sv);
}

/* The lock is not lost: who has left the group is outside. */
TEST(ends, a_server_that_is_back_after_command_was_told_leaves_it_to_itself)
{
    pack p =
        pack_start(NULL, "6",
                   "trap 'echo told' TERM; "
                   "setsid sleep 100 & echo $! >\"$1\"; echo $$ >\"$2\"; "
                   "while ! [ -e \"$2.go\" ]; do sleep 0.01; done; exit 7");
    test_lease(6000);
    char go[64];
    snprintf(go, sizeof go, "%s.go", command_file(p.sv, "command"));
    server_pause(p.sv);
    EVENTUALLY(SOON, strstr(command_out(p.c), "told"));
    server_resume(p.sv);
    EVENTUALLY(SOON, key_ttl(p.sv, SCENE_LOCK) > 5000);
    EVENTUALLY(SOON, key_ttl(p.sv, SCENE_LOCK) < 5000); /* rlock knows */
    fclose(fopen(go, "we"));
    EXPECT_INT(command_status(p.c), 123);
    EXPECT_CONTAINS(command_err(p.c), "rlock: COMMAND was told to end, as lock "
                                      "'job' was not renewed in time\n");
    EXPECT(process_is_alive(p.child));
    kill(p.child, SIGKILL);
    pack_stop(&p);
}

TEST(ends, a_server_that_is_back_in_time_ends_nothing)
{
    pack p = pack_start(NULL, "6", pack_of_two);
    test_lease(6000);
    long long calls = script_calls(p.sv);
    server_pause(p.sv);
    test_pause_ms(2500); /* a renewal was due, and had no answer */
    server_resume(p.sv);
    EVENTUALLY(SOON, script_calls(p.sv) >= calls + 3);
    EXPECT(process_is_alive(p.command) && process_is_alive(p.child));
    kill(-p.command, SIGKILL);
    EXPECT_INT(command_status(p.c), 128 + SIGKILL);
    pack_stop(&p);
}
