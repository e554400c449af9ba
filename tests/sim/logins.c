/*
 * Logins and databases: what a server wants to hear first. All servers have one
 * password, which may be changed (login_rotate()); the program learns of that a
 * little later, as programs do. A login may run out. Sentinels have a password
 * of their own, and no database.
 *
 * A key that is asked for in another database than the program has named is a
 * finding: it would be another lock.
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "sentinel.h"
#include "world.h"

static unsigned version = 1, known = 1; /* of the password */
static event learns;

static const char *spell(unsigned n)
{
    static char at[20];
    snprintf(at, sizeof at, "secret%u", n);
    return at;
}

const char *login_password(void)
{
    return spell(known);
}

const char *login_of_sentinels(void)
{
    return "watchword";
}

static void learn(event *e)
{
    (void)e;
    known = version;
    trace("the program knows the password %u", known);
}

void login_rotate(server *s)
{
    (void)s;
    trace("the password is another one from now on, %u", ++version);
    learns.fire = learn;
    event_set(&learns, w.now + chance_skewed(&w.dice, 2 * S));
}

/* --- what a server answers ------------------------------------------------ */

static bool is_right(const conn *c, const word *argv, size_t n)
{
    bool is_known = n == 2 || (n == 3 && word_is(&argv[1], LOGIN_USER));
    return is_known &&
           word_is(&argv[n - 1], sentinel_is_one(c->s) ? login_of_sentinels()
                                                       : spell(version));
}

static void answer_auth(conn *c, const word *argv, size_t n, text *out)
{
    if (cfg.login == LOGIN_NONE)
        finding("a login that no server wants");
    c->is_known = is_right(c, argv, n);
    if (cfg.valid_ms > 0 && !sentinel_is_one(c->s))
        c->known_until = w.now + cfg.valid_ms * MS;
    if (c->is_known)
        text_print(out, "+OK\r\n");
    else
        text_print(out, "-WRONGPASS invalid username-password pair or user is "
                        "disabled.\r\n");
}

/* Then the server hangs up. In a calm world the library has seen to that. */
static bool has_run_out(conn *c)
{
    if (!c->is_known || !c->known_until || w.now < c->known_until)
        return false;
    if (cfg.calm)
        finding("judge 11: a login of %lld ms is used when it has run out",
                (long long)cfg.valid_ms);
    trace("the login of connection %u has run out", c->number);
    conn_cut(c);
    return true;
}

bool login_answers(conn *c, const word *argv, size_t n, text *out)
{
    long long db = 0;
    if (word_is(&argv[0], "AUTH")) {
        answer_auth(c, argv, n, out);
    } else if (cfg.login != LOGIN_NONE && !c->is_known) {
        text_print(out, "-NOAUTH Authentication required.\r\n");
    } else if (has_run_out(c)) {
        return true;
    } else if (word_is(&argv[0], "SELECT")) {
        if (n != 2 || !word_number(&argv[1], &db))
            finding("a database that is no number");
        c->db = (int)db;
        text_print(out, "+OK\r\n");
    } else {
        return false;
    }
    return true;
}

void login_check(const conn *c)
{
    if (c->db != cfg.db)
        finding("keys are asked for in database %d instead of %d", c->db,
                (int)cfg.db);
}
