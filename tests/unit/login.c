/* Who we say that we are: where that comes from, until when it is good, and what
   a server's answer to it means. */
#include "net/login.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "shim.h"
#include "test.h"

#define MS 1000LL

/* What the program hands out. */
typedef struct program {
    rl_credentials from;
    rlock_credentials gives;
    int result, asked;
} program;

static int hand_out(rlock_credentials *out, void *arg)
{
    program *p = arg;
    *out = p->gives;
    p->asked++;
    return p->result;
}

static void open_program(program *p, const char *user, const char *password,
                         int64_t valid_ms)
{
    *p = (program){
        .gives = {.user = user, .password = password, .valid_ms = valid_ms},
        .result = 1};
    rl_credentials_init(&p->from);
    p->from.callback = hand_out;
    p->from.arg = p;
}

static rlock_status get(program *p, rl_login *l, rl_fault *f)
{
    rl_uri u = {.user = "of the uri", .password = "too"};
    return rl_login_get(&p->from, &u, l, rl_now_us() + 1000 * MS, f);
}

/* --- where it comes from --------------------------------------------------- */

TEST(login, is_the_uris_where_no_program_is_asked)
{
    program p;
    rl_login l;
    rl_fault f;
    open_program(&p, "u", "p", 0);
    p.from.callback = NULL;
    EXPECT_INT(get(&p, &l, &f), RLOCK_OK);
    EXPECT_STR(l.user, "of the uri");
    EXPECT_STR(l.password, "too");
    EXPECT(l.expires_us == RL_NEVER && !l.passing && p.asked == 0);
    rl_login_fini(&l);
    EXPECT(!l.user && !l.password);
    rl_credentials_fini(&p.from);
}

TEST(login, is_a_copy_of_what_the_program_hands_out)
{
    char user[] = "u", password[] = "p";
    program p;
    rl_login l;
    rl_fault f;
    open_program(&p, user, password, 0);
    EXPECT_INT(get(&p, &l, &f), RLOCK_OK);
    *user = *password = 'x';
    EXPECT_STR(l.user, "u");
    EXPECT_STR(l.password, "p");
    EXPECT(l.expires_us == RL_NEVER && l.passing && !p.from.asking);
    rl_login_fini(&l);
    rl_credentials_fini(&p.from);
}

static void expect_life(int64_t valid_ms, int64_t life_us)
{
    program p;
    rl_login l;
    rl_fault f;
    open_program(&p, "u", "p", valid_ms);
    int64_t now_us = rl_now_us();
    EXPECT_INT(get(&p, &l, &f), RLOCK_OK);
    EXPECT_BETWEEN(l.expires_us - now_us, life_us, life_us + 2000000);
    rl_login_fini(&l);
    rl_credentials_fini(&p.from);
}

/* A tenth of its time is for who looks at the clock too late. */
TEST_CASE(login, of_a_minute_is_good_for_most_of_that,
          expect_life(60000, 54000 * MS))
TEST_CASE(login, of_an_hour_is_too, expect_life(3600000, 3240000 * MS))

static void expect_none(int result, int64_t valid_ms, const char *text)
{
    program p;
    rl_login l;
    rl_fault f;
    open_program(&p, "u", "p", valid_ms);
    p.result = result;
    EXPECT_INT(get(&p, &l, &f), RLOCK_EIO);
    EXPECT_STR(f.text, text);
    EXPECT(f.sys_errno == 0 && f.transient && !l.user && !l.password);
    EXPECT(l.expires_us == RL_NEVER && !p.from.asking);
    rl_login_fini(&l);
    rl_credentials_fini(&p.from);
}

TEST_CASE(login, that_the_program_does_not_have_is_none,
          expect_none(0, 0, "login failed: the credentials callback has none"))
TEST_CASE(login, of_which_the_program_answers_something_else_is_none,
          expect_none(2, 0, "login failed: the credentials callback has none"))
TEST_CASE(login, that_has_expired_is_none,
          expect_none(1, -1, "login failed: the credentials have expired"))

TEST(login, is_none_while_the_program_is_asked_by_somebody_else)
{
    program p;
    rl_login l;
    rl_fault f;
    rl_uri u = {.user = NULL};
    open_program(&p, "u", "p", 0);
    p.from.asking = true;
    EXPECT_INT(rl_login_get(&p.from, &u, &l, rl_now_us() - 1, &f), RLOCK_EIO);
    EXPECT_STR(f.text, "login failed: the credentials callback is busy");
    EXPECT_INT(f.sys_errno, ETIMEDOUT);
    EXPECT(p.asked == 0 && p.from.asking && !l.user);
    rl_credentials_fini(&p.from);
}

TEST(login, for_which_there_is_no_memory_is_none)
{
    program p;
    rl_login l;
    rl_fault f;
    open_program(&p, "u", "p", 0);
    for (int nth = 1; nth <= 2; nth++) {
        shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
        rlock_status s = get(&p, &l, &f);
        shim_clear(shim_here());
        EXPECT_INT(s, RLOCK_ENOMEM);
        EXPECT_STR(f.text, "out of memory");
        EXPECT(f.sys_errno == 0 && !p.from.asking);
        rl_login_fini(&l);
    }
    rl_credentials_fini(&p.from);
}

/* --- what is said ----------------------------------------------------------- */

static void expect_said(const char *user, const char *password,
                        const char *wanted)
{
    int fds[2];
    const char *bytes = "";
    rl_question q = {.replies = 0};
    EXPECT_INT(pipe(fds), 0);
    rl_conn *c = rl_conn_new(rl_plain_transport(fds[0]));
    rl_login l = {.user = (char *)user, .password = (char *)password};
    EXPECT_INT(rl_login_put(&l, c, &q), *wanted != '\0');
    EXPECT_INT(rl_line_bytes(&c->line, &bytes), strlen(wanted));
    EXPECT(!*wanted || memcmp(bytes, wanted, strlen(wanted)) == 0);
    rl_conn_break(c, &(rl_fault){.status = RLOCK_EIO});
    rl_conn_free(c);
    close(fds[1]);
}

TEST_CASE(login, of_nobody_is_not_said, expect_said(NULL, NULL, ""))
TEST_CASE(login, of_a_password_is_said_without_a_user,
          expect_said(NULL, "pw", "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"))
TEST_CASE(login, of_a_user_is_said_with_the_password,
          expect_said("u", "pw", "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$2\r\npw\r\n"))
TEST_CASE(login, of_a_user_alone_is_said_with_an_empty_one,
          expect_said("u", NULL, "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$0\r\n\r\n"))

/* --- what the server says ---------------------------------------------------- */

#define LEFT_OUT                                                               \
    "login failed: the server does not accept AUTH (its answer may repeat "    \
    "the password and is left out)"

/* Such credentials are not taken: of a program's there may be others soon. */
typedef enum verdict { STAYS, PASSES, WRONG } verdict;

/* text: NULL: the answer's. */
static void judge(const char *answer, const char *password, bool passing,
                  verdict v, const char *text)
{
    rl_login l = {.password = (char *)password, .passing = passing};
    rl_reply r = {.top = {.type = REDIS_REPLY_ERROR, .str = answer}};
    rl_fault f;
    bool wrong = v != WRONG;
    char whole[200];
    EXPECT_INT(rl_login_judge(&l, &r, &wrong, &f), RLOCK_ESERVER);
    snprintf(whole, sizeof whole, "login failed: %s", answer);
    EXPECT_STR(f.text, text ? text : whole);
    EXPECT_INT(f.sys_errno, 0);
    EXPECT_INT(wrong, v == WRONG);
    EXPECT_INT(f.transient, v == PASSES || (passing && v == WRONG));
}

static void expect_judged(const char *answer, verdict v, const char *text)
{
    judge(answer, "secret", false, v, text);
    judge(answer, "secret", true, v, text);
    judge(answer, "", false, v, text);
    judge(answer, NULL, false, v, text);
}

#define TOLD(name, answer, verdict)                                            \
    TEST_CASE(login, name, expect_judged(answer, verdict, NULL))
#define KEPT(name, answer, verdict)                                            \
    TEST_CASE(login, name, expect_judged(answer, verdict, LEFT_OUT))

TOLD(that_is_wrong_may_be_changed_by_the_program,
     "WRONGPASS invalid username-password pair", WRONG)
TOLD(that_is_wrong_by_an_older_server_too, "ERR invalid password", WRONG)
TOLD(that_is_missing_is_told, "NOAUTH Authentication required.", STAYS)
TOLD(that_lacks_a_right_is_told, "NOPERM this user has no permissions", STAYS)
TOLD(while_a_server_is_loading_passes, "LOADING Redis is loading", PASSES)
TOLD(at_a_full_server_passes, "ERR max number of clients reached", PASSES)
TOLD(at_a_server_without_users_is_told, "ERR AUTH <password> called", STAYS)
TOLD(at_a_server_without_a_password_is_told,
     "ERR Client sent AUTH, but no password is set", STAYS)
TOLD(at_a_protected_server_is_told, "DENIED Redis is running in", STAYS)
KEPT(that_may_be_repeated_is_left_out,
     "ERR unknown command `AUTH`, with args beginning with: `x`", STAYS)
KEPT(in_the_middle_of_a_text_is_left_out, "ERR it says WRONGPASS", STAYS)

TEST(login, a_password_is_never_repeated)
{
    judge("WRONGPASS of secret", "secret", false, WRONG, LEFT_OUT);
    judge("WRONGPASS of secret", "secret", true, WRONG, LEFT_OUT);
}

TEST(login, that_is_taken_is_judged_by_nothing)
{
    rl_login l = {.password = "x"};
    rl_reply r = {.top = {.type = REDIS_REPLY_STATUS, .str = "OK"}};
    rl_fault f = {.status = RLOCK_OK};
    bool wrong = false;
    EXPECT_INT(rl_login_judge(&l, &r, &wrong, &f), RLOCK_OK);
    EXPECT(!wrong && f.status == RLOCK_OK);
}
