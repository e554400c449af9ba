/* `rlock waits` and `show`: who stands in line, and what is known of one lock. */
#include <unistd.h>

#include "command.h"
#include "rw_scene.h"

/* A lock that is held by hand, with a waiter of which only its client is known.
 */
static server *with_waiter(void)
{
    server *sv = server_start(NULL);
    take_by_hand(sv, "job", 0);
    server_cmd(sv, "ZADD rlock_queue:{job} 1000000 some\033body");
    return sv;
}

/* A process that has a lock, and waits for that of another one. */
static void live(child *c, void *arg)
{
    const char *const *name = arg;
    rlock_client *cl;
    rlock *mine, *wanted;
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = child_take_uri(c);
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_OK);
    EXPECT_STATUS(rlock_new(cl, name[0], &mine), RLOCK_OK);
    EXPECT_STATUS(rlock_new(cl, name[1], &wanted), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(mine), RLOCK_OK);
    child_tell(c, 'h');
    child_expect(c, 'w');
    (void)rlock_lock(wanted);
}

typedef struct circle {
    child *of[2];
    server *sv;
} circle;

static circle circle_start(void)
{
    static const char *names[] = {"a", "b", "a"};
    circle x = {{child_start(live, names), child_start(live, names + 1)}, NULL};
    x.sv = server_start(NULL);
    for (int i = 0; i < 2; i++) {
        child_give_uri(x.of[i], x.sv);
        child_expect(x.of[i], 'h');
    }
    child_tell(x.of[0], 'w');
    child_tell(x.of[1], 'w');
    return x;
}

static void circle_end(circle *x)
{
    child_kill(x->of[0]);
    child_kill(x->of[1]);
    server_stop(x->sv);
}

static const char *waits(server *sv)
{
    return command_prints(sv, WORDS("waits"));
}

/* --- waits ---------------------------------------------------------------- */

TEST(queue, waits_tells_who_waits_for_whom)
{
    server *sv = with_waiter();
    const char *text = waits(sv);
    EXPECT_CONTAINS(text, "\njob   lock  some\\x1bbody  ");
    EXPECT_CONTAINS(text, "  other:1:1  -\n");
    server_stop(sv);
}

TEST(queue, waits_tells_the_rank_of_who_stands_in_line)
{
    scene s = scene_held(0, 0);
    rlock *fair;
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    o.fair = true;
    EXPECT_STATUS(rlock_new_ex(s.cl, "job", 3, &o, &fair), RLOCK_OK);
    waiter *w = waiter_start(fair, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, strstr(waits(s.sv), "  0     "));
    EXPECT_CONTAINS(waits(s.sv), "  RANK  HOLDER");
    EXPECT_CONTAINS(waits(s.sv), "\njob   fair  ");
    EXPECT_CONTAINS(command_prints(s.sv, WORDS("waits", "--json")),
                    ",\"rank\":0,\"circle\":null,");
    EXPECT_CONTAINS(command_prints(s.sv, WORDS("ls", "--json")),
                    ",\"waiting\":1,");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(fair);
    scene_stop(&s);
}

TEST(queue, waits_tells_what_is_waited_for_and_how_many_have_it)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    waiter *w = rw_stand(&r, r.mine.write, RLOCK_FOREVER, 1);
    EXPECT_CONTAINS(waits(r.s.sv), "\njob   write  ");
    EXPECT_CONTAINS(waits(r.s.sv), " +1  -\n");
    const char *text = command_prints(r.s.sv, WORDS("waits", "--json"));
    EXPECT_CONTAINS(text, "{\"name\":\"job\",\"kind\":\"write\",");
    EXPECT_CONTAINS(text, "},{\"id\":");
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(queue, waits_marks_a_circle)
{
    circle x = circle_start();
    EVENTUALLY(SOON, strstr(waits(x.sv), "circle 1"));
    const char *first = strstr(waits(x.sv), "circle 1");
    EXPECT(first && strstr(first + 1, "circle 1"));
    EXPECT_CONTAINS(command_prints(x.sv, WORDS("waits", "--json")),
                    ",\"circle\":1,\"holder\":{");
    circle_end(&x);
}

TEST(queue, waits_tells_json)
{
    server *sv = with_waiter();
    const char *text = command_prints(sv, WORDS("waits", "--json"));
    EXPECT_CONTAINS(
        text, "{\"name\":\"job\",\"kind\":\"lock\",\"waiter\":null,\"client\":"
              "\"some\\u001bbody\",\"since_us\":1000000,"
              "\"waited_ms\":");
    EXPECT_CONTAINS(text, ",\"rank\":null,\"circle\":null,"
                          "\"holder\":{\"id\":\"" BY_HAND "\"");
    EXPECT_CONTAINS(text, ",\"holders\":[{\"id\":\"" BY_HAND "\"");
    EXPECT_CONTAINS(text, ",\"count\":1,\"ttl_ms\":");
    server_stop(sv);
}

TEST(queue, waits_names_the_right_that_is_missing)
{
    char uri[80];
    server *sv = server_start_tcp(NULL);
    server_str(sv, "ACL SETUSER watch on >pass ~* &* +@all -scan");
    snprintf(uri, sizeof uri, "redis://watch:pass@127.0.0.1:%d",
             server_port(sv));
    setenv("RLOCK_URI", uri, 1);
    command_fails(NULL, WORDS("waits"), "'scan'");
    command_fails(NULL, WORDS("show", "job"), "'scan'");
    server_stop(sv);
}

/* --- show ----------------------------------------------------------------- */

TEST(queue, show_tells_holder_lease_and_token)
{
    scene s = scene_held(0, 0);
    char wanted[100];
    rlock_holder h;
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    const char *text = command_prints(s.sv, WORDS("show", "job"));
    snprintf(wanted, sizeof wanted, "hold     %s\nkind     hash\ncount    1\n",
             h.hold_id);
    EXPECT_CONTAINS(text, wanted);
    snprintf(wanted, sizeof wanted, "token    %llu\nwaiting  0\n",
             (unsigned long long)rlock_token(s.lk));
    EXPECT_CONTAINS(text, wanted);
    EXPECT(!strstr(text, "held     -") && !strstr(text, "lease    none"));
    scene_stop(&s);
}

TEST(queue, show_tells_who_waits_for_that_lock_only)
{
    server *sv = with_waiter();
    server_cmd(sv, "ZADD rlock_queue:{other} 1000000 rlock_bell:stranger");
    const char *text = command_prints(sv, WORDS("show", "job"));
    EXPECT_CONTAINS(text, "lease    none\ntoken    -\nwaiting  1\n\n");
    EXPECT_CONTAINS(text, "\nsome\\x1bbody  ");
    EXPECT(!strstr(text, "stranger"));
    server_stop(sv);
}

TEST(queue, show_of_a_free_one_is_1_and_tells_its_last_token)
{
    scene s = scene_held(0, 0);
    char wanted[100];
    snprintf(wanted, sizeof wanted, "state    free\ntoken    %llu\n",
             (unsigned long long)rlock_token(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    command *c = RLOCK(s.sv, "show", "job");
    EXPECT_INT(command_status(c), 1);
    EXPECT_CONTAINS(command_out(c), wanted);
    command_free(c);
    scene_stop(&s);
}

TEST(queue, show_takes_a_name_and_no_pattern)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "ZADD rlock_queue:{ab} 1000 rlock_bell:x");
    server_cmd(sv, "ZADD rlock_queue:{[a]?} 1000 rlock_bell:x 1000 "
                   "rlock_bell:y");
    server_cmd(sv, "ZADD rlock_queue:{?b} 1000 rlock_bell:x 1000 rlock_bell:y "
                   "1000 rlock_bell:z");
    take_by_hand(sv, "?b", 0);
    take_by_hand(sv, "[a]?", 0);
    EXPECT_CONTAINS(command_prints(sv, WORDS("show", "?b")), "waiting  3\n");
    EXPECT_CONTAINS(command_prints(sv, WORDS("show", "[a]?")), "waiting  2\n");
    server_stop(sv);
}

TEST(queue, show_tells_json_with_the_queue)
{
    server *sv = with_waiter();
    const char *text = command_prints(sv, WORDS("show", "job", "--json"));
    EXPECT_CONTAINS(text, "{\"name\":\"job\",\"held\":true,\"layout\":\"hash\","
                          "\"holder\":{\"id\":\"" BY_HAND "\"");
    EXPECT_CONTAINS(text, "},\"count\":1,\"held_ms\":null,\"ttl_ms\":null,"
                          "\"waiting\":1,\"token\":null,\"in_all\":1,"
                          "\"available\":null,\"queue\":[{\"waiter\":"
                          "null,\"client\":\"some\\u001bbody\",");
    EXPECT_CONTAINS(text, ",\"circle\":null}]}\n");
    server_stop(sv);
}

TEST(queue, show_counts_another_program_that_has_it)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "SET theirs token");
    server_cmd(sv, "HSET java 285475da-9152-4c83-822a-67ee2f116a79:52 1");
    EXPECT_CONTAINS(command_prints(sv, WORDS("show", "theirs", "--json")),
                    ",\"in_all\":1,");
    EXPECT_CONTAINS(command_prints(sv, WORDS("show", "java", "--json")),
                    ",\"in_all\":1,");
    server_stop(sv);
}

TEST(queue, of_several_servers_each_tells_its_queue)
{
    char wanted[200];
    server *sv[] = {with_waiter(), server_start(NULL)};
    take_by_hand(sv[1], "job", 0);
    const char *text =
        command_prints(NULL, WORDS("-u", server_uri(sv[0]), "-u",
                                   server_uri(sv[1]), "show", "job"));
    snprintf(wanted, sizeof wanted, "\n%s  some\\x1bbody  ", server_uri(sv[0]));
    EXPECT_CONTAINS(text, wanted);
    text = command_prints(
        NULL, WORDS("-u", server_uri(sv[0]), "-u", server_uri(sv[1]), "waits"));
    snprintf(wanted, sizeof wanted, "\n%s  job   lock  some\\x1bbody  ",
             server_uri(sv[0]));
    EXPECT_CONTAINS(text, wanted);
    server_stop(sv[0]);
    server_stop(sv[1]);
}

TEST(queue, show_of_several_servers_tells_what_those_know_that_are_there)
{
    server *sv[] = {with_waiter(), server_start(NULL), server_start(NULL)};
    for (int i = 1; i < 3; i++)
        take_by_hand(sv[i], "job", 0);
    const char *const words[] = {
        "-u", server_uri(sv[0]), "-u",   server_uri(sv[1]),
        "-u", server_uri(sv[2]), "show", "job",
        NULL};
    EXPECT_CONTAINS(command_prints(NULL, words), "state    held");
    server_kill(sv[2]);
    command *c = command_start(NULL, words);
    EXPECT_INT(command_status(c), 125);
    EXPECT_CONTAINS(command_out(c), "state    held");
    EXPECT_CONTAINS(command_out(c), "waiting  1\n\n");
    EXPECT_CONTAINS(command_out(c), "  some\\x1bbody  ");
    const char *err = command_err(c);
    EXPECT_CONTAINS(err, server_uri(sv[2]));
    EXPECT_INT(strchr(err, '\n') - err + 1, strlen(err));
    command_free(c);
    for (int i = 0; i < 3; i++)
        server_stop(sv[i]);
}
