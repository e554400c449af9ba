/* What is asked of each server to tell what threatens locks there, and what is told
   when some of it is refused, comes late, or makes no sense. */
#include "surveyed.h"

/* --- what is asked, and told ---------------------------------------------- */

/* Whatever is asked comes before what makes other answers worthless. */
static const char *const in_order[] = {"PING rlock",
                                       "TIME",
                                       "EVALSHA probe",
                                       "SUBSCRIBE",
                                       "UNSUBSCRIBE",
                                       "PING rlock",
                                       "CONFIG GET appendfsync",
                                       "CONFIG GET min-replicas-to-write",
                                       "CONFIG GET databases",
                                       "INFO",
                                       "CLIENT ID",
                                       "PING rlock",
                                       "CLIENT ID",
                                       "INFO server",
                                       "CLIENT ID"};

TEST(servers, are_asked_one_thing_after_the_other)
{
    scene s;
    open_well(&s);
    EXPECT_STATUS(only(&s)->status, RLOCK_OK);
    const char *at = stub_heard(&s.b);
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) {
        size_t len = strlen(in_order[i]);
        EXPECT(strncmp(at, in_order[i], len) == 0);
        do
            at = strchr(at, '\n') + 1;
        while (strncmp(at, "TIME\n", 5) == 0 &&
               strcmp(in_order[i], "TIME") == 0);
    }
    EXPECT_STR(at, "");
    EXPECT_INT(stub_asked(&s.b, "TIME"), 32);
    EXPECT_INT(s.b.conns, 2);
    close_scene(&s);
}

TEST(servers, are_told_with_all_that_they_say)
{
    scene s;
    open_well(&s);
    const rlock_server_info *x = only(&s);
    EXPECT(x->role == RLOCK_SERVER_MASTER && x->status == RLOCK_OK);
    EXPECT_STR(s.t.address[0], "unix:///nowhere");
    EXPECT_STR(s.t.error[0], "");
    EXPECT_STR(s.t.eviction[0], "noeviction");
    EXPECT_STR(s.t.fsync[0], "always");
    EXPECT_STR(s.t.missing[0], "");
    EXPECT(x->min_replicas == 2 && x->databases == 16 && x->channels == 1);
    EXPECT(x->same_server == 1 && x->own_connections == 1);
    EXPECT_INT(x->cluster_ok, RLOCK_NOT_TOLD);
    EXPECT_INT(x->keys, RLOCK_NOT_TOLD); /* where a callback connects to */
    close_scene(&s);
}

/* --- its clock ------------------------------------------------------------ */

#define SERVER_US INT64_C(1700000000500000) /* as the stub says */

static int64_t wall_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void take_ms(scene *s, int nth, int64_t ms, const char *answer)
{
    stub_row_add(
        &s->b,
        (stub_row){.words = "TIME", .answer = answer, .nth = nth, .ms = ms});
}

#define AT(s, us) "*2\r\n$10\r\n" s "\r\n$6\r\n" us "\r\n"
#define IN_2023   AT("1700000000", "500000")
#define IN_2020   AT("1600000000", "000000")

/* What it said is taken to be as old as half of the way. */
TEST(servers, are_ahead_by_what_they_say_and_half_of_the_way)
{
    scene s;
    open_well(&s);
    take_ms(&s, 0, 900, IN_2023);
    int64_t before_us = wall_us();
    const rlock_server_info *x = only(&s);
    int64_t after_us = wall_us();
    EXPECT_INT(stub_asked(&s.b, "TIME"), 2); /* within a second */
    EXPECT(x->rtt_p50_us >= 900000 && x->rtt_p99_us >= x->rtt_p50_us);
    EXPECT_BETWEEN(x->clock_ahead_us, SERVER_US - after_us - x->rtt_p99_us / 2,
                   SERVER_US - before_us - 450000);
    close_scene(&s);
}

TEST(servers, are_asked_the_time_for_a_second_at_most)
{
    scene s;
    open_well(&s);
    take_ms(&s, 0, 100, IN_2023);
    EXPECT(only(&s)->rtt_p50_us >= 100000);
    EXPECT_BETWEEN(stub_asked(&s.b, "TIME"), 5, 10);
    close_scene(&s);
}

/* Whichever of them it was. */
static void expect_quickest(int nth)
{
    scene s;
    open_well(&s);
    take_ms(&s, 0, 200, IN_2020);
    take_ms(&s, nth, 0, IN_2023);
    int64_t before_us = wall_us();
    const rlock_server_info *x = only(&s);
    EXPECT_BETWEEN(x->clock_ahead_us, SERVER_US - wall_us() - 200000,
                   SERVER_US - before_us);
    EXPECT(x->rtt_p50_us >= 200000 && x->rtt_p99_us < 1000000);
    close_scene(&s);
}

TEST_CASE(servers, tell_the_time_best_when_the_first_is_the_quickest,
          expect_quickest(1))
TEST_CASE(servers, tell_the_time_best_when_the_third_is_the_quickest,
          expect_quickest(3))

static void expect_no_time(const char *answer)
{
    scene s;
    open_well(&s);
    take_ms(&s, 0, 0, answer);
    const rlock_server_info *x = only(&s);
    EXPECT_INT(x->clock_ahead_us, RLOCK_NOT_TOLD);
    EXPECT(x->rtt_p50_us >= 0 && x->rtt_p99_us >= 0);
    EXPECT_INT(stub_asked(&s.b, "TIME"), 32);
    EXPECT_STR(s.t.eviction[0], "noeviction");
    close_scene(&s);
}

TEST_CASE(servers, may_not_be_asked_the_time, expect_no_time("-NOPERM no\r\n"))
TEST_CASE(servers, may_tell_a_time_of_three_parts,
          expect_no_time("*3\r\n:1\r\n:2\r\n:3\r\n"))

/* --- what it is set to ---------------------------------------------------- */

static void expect_no_option(const char *answer)
{
    scene s;
    open_well(&s);
    stub_say(&s.b, "CONFIG GET", answer);
    const rlock_server_info *x = only(&s);
    EXPECT_STR(s.t.fsync[0], "not told");
    EXPECT(x->min_replicas == RLOCK_NOT_TOLD && x->databases == RLOCK_NOT_TOLD);
    EXPECT_INT(stub_asked(&s.b, "CONFIG GET"), 3);
    EXPECT_INT(x->role, RLOCK_SERVER_MASTER);
    close_scene(&s);
}

TEST_CASE(servers, may_not_be_asked_for_options,
          expect_no_option("-NOPERM no\r\n"))
TEST_CASE(servers, may_have_no_such_option, expect_no_option("*0\r\n"))
TEST_CASE(servers, may_have_an_option_that_is_no_text,
          expect_no_option("*2\r\n$1\r\nx\r\n$-1\r\n"))
TEST_CASE(servers, may_have_an_option_of_three,
          expect_no_option("*3\r\n$1\r\nx\r\n$1\r\n1\r\n$1\r\n2\r\n"))

/* --- INFO ----------------------------------------------------------------- */

static void expect_no_info(const char *answer)
{
    scene s;
    open_well(&s);
    stub_say(&s.b, "INFO", answer);
    const rlock_server_info *x = only(&s);
    EXPECT_STR(s.t.error[0], "");
    EXPECT_INT(x->role, RLOCK_SERVER_UNKNOWN);
    EXPECT_STR(s.t.eviction[0], "not told");
    EXPECT_INT(x->same_server, RLOCK_NOT_TOLD);
    EXPECT_INT(x->own_connections, 1);
    EXPECT_STR(s.t.fsync[0], "always");
    close_scene(&s);
}

TEST_CASE(servers, may_not_be_asked_for_info, expect_no_info("-NOPERM no\r\n"))
TEST_CASE(servers, may_have_info_of_no_length, expect_no_info("$0\r\n\r\n"))
TEST_CASE(servers, may_have_no_info, expect_no_info("$-1\r\n"))

TEST(servers, whose_info_is_no_text_are_told_as_broken)
{
    scene s;
    open_well(&s);
    stub_say(&s.b, "INFO", ":1\r\n");
    EXPECT_STATUS(only(&s)->status, RLOCK_EIO);
    EXPECT_STR(s.t.fsync[0], "not told");
    close_scene(&s);
}

/* As many bytes as are taken, and one more. */
static void expect_long_info(size_t len, const char *eviction)
{
    static char text[66 * 1024];
    static const char last[] = "\r\nmaxmemory_policy:noeviction";
    scene s;
    open_well(&s);
    memset(text, 'x', len);
    memcpy(text, "role:master\r\n", 13);
    strcpy(text + len - strlen(last), last);
    stub_say_text(&s.b, "INFO", text, 1);
    EXPECT_INT(only(&s)->role, RLOCK_SERVER_MASTER);
    EXPECT_STR(s.t.eviction[0], eviction);
    close_scene(&s);
}

TEST_CASE(servers, may_have_as_much_info_as_is_taken,
          expect_long_info(64 * 1024 - 1, "noeviction"))
TEST_CASE(servers, whose_info_is_longer_are_told_without_the_rest,
          expect_long_info(64 * 1024, "noevictio"))

/* --- replicas ------------------------------------------------------------- */

static const char *info_of_replicas(int n)
{
    static char text[4000];
    size_t len = (size_t)sprintf(text, "role:master\r\n");
    for (int i = 0; i < n; i++)
        len += (size_t)sprintf(text + len,
                               "slave%d:ip=10.0.0.%d,port=6379,state=online,"
                               "offset=1,lag=0\r\n",
                               i, i);
    return text;
}

static void expect_replicas(scene *s, int n, const char *scheme)
{
    char address[80];
    stub_say_text(&s->b, "INFO", info_of_replicas(n), 1);
    EXPECT_STATUS(look(s), RLOCK_OK);
    EXPECT_INT(s->t.n, n + 1);
    EXPECT_INT(s->t.at[0].role, RLOCK_SERVER_MASTER);
    EXPECT_INT(s->t.at[0].own_connections, 1);
    for (int i = 0; i < n; i++) {
        snprintf(address, sizeof address, "%s://10.0.0.%d:6379", scheme, i);
        EXPECT_STR(s->t.address[i + 1], address);
        EXPECT_INT(s->t.at[i + 1].role, RLOCK_SERVER_REPLICA);
        EXPECT_INT(s->t.at[i + 1].own_connections, RLOCK_NOT_TOLD);
    }
}

/* More than there was room for at first, and twice as many. */
static void expect_replicas_told(int n)
{
    scene s;
    open_well(&s);
    expect_replicas(&s, n, "redis");
    close_scene(&s);
}

TEST_CASE(servers, are_told_with_a_replica, expect_replicas_told(1))
TEST_CASE(servers, are_told_with_seven_replicas, expect_replicas_told(7))
TEST_CASE(servers, are_told_with_eight_replicas, expect_replicas_told(8))
TEST_CASE(servers, are_told_with_twenty_replicas, expect_replicas_told(20))

/* A master with TLS has replicas with it. */
TEST(servers, with_tls_have_replicas_with_it)
{
    scene s;
    open_well(&s);
    s.e->tls = (rl_tls *)&s; /* nothing is asked of it */
    expect_replicas(&s, 1, "rediss");
    s.e->tls = NULL;
    close_scene(&s);
}
