#include "wire/error.h"

#include <string.h>

#define PLACE "@user_script:"

/* A command in a script is about a key whose slot is moving, and which is, or
   will be, on another server. */
#define ELSEWHERE "attempted to access a non local key"

#define NO    true, false, false
#define LATER true, true, false
#define MOVED true, true, true

static const rl_error_kind kinds[] = {
    {"WRONGTYPE", RLOCK_EWRONGTYPE, NO},
    {"NOSCRIPT", RLOCK_ESERVER, LATER},
    {"LOADING", RLOCK_ESERVER, LATER},
    {"BUSY ", RLOCK_ESERVER, LATER},
    {"TRYAGAIN", RLOCK_ESERVER, LATER},
    {"CLUSTERDOWN", RLOCK_ESERVER, LATER},
    {"MISCONF", RLOCK_ESERVER, LATER},
    {"NOREPLICAS", RLOCK_ESERVER, LATER},
    {"max number of clients", RLOCK_ESERVER, MOVED},
    {"READONLY", RLOCK_ESERVER, MOVED},
    {"MASTERDOWN", RLOCK_ESERVER, MOVED},
    {"OOM ", RLOCK_ESERVER, NO},
    {"NOAUTH", RLOCK_ESERVER, NO},
    {"WRONGPASS", RLOCK_ESERVER, NO},
    {"NOPERM", RLOCK_ESERVER, NO},
    {"MOVED ", RLOCK_ESERVER, NO},
    {"ASK ", RLOCK_ESERVER, NO},
    {"CROSSSLOT", RLOCK_ESERVER, NO},
    {"unknown command", RLOCK_ESERVER, NO},
    {ELSEWHERE, RLOCK_ESERVER, LATER},
    {"rlock: bad", RLOCK_ESERVER, NO},
};

/* A script that failed half-way may have written something. */
static const rl_error_kind unknown = {"", RLOCK_ESERVER, false, false, false};

/*
 * Redis before 7 begins with where it happened, at length: "ERR Error running
 * script (call to f_...): @user_script:7: @user_script: 7: WRONGTYPE ...".
 */
static const char *what_happened(const char *text)
{
    if (strncmp(text, "ERR Error running script", 24) != 0)
        return text;
    for (const char *at; (at = strstr(text, PLACE)) != NULL;)
        text = at + strlen(PLACE) + strspn(at + strlen(PLACE), " :-0123456789");
    return text;
}

const rl_error_kind *rl_error_reply(const rl_reply *r, rl_fault *f)
{
    const rl_error_kind *kind = &unknown;
    const char *text = what_happened(r->top.str);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strstr(text, kinds[i].word)) {
            kind = &kinds[i];
            break;
        }
    }
    rl_fault_set(f, kind->status, 0, "the server answered: %s", text);
    if (f)
        f->transient = kind->transient;
    return kind;
}

bool rl_error_is_noscript(const rl_reply *r)
{
    return rl_reply_is(r, REDIS_REPLY_ERROR) &&
           strncmp(r->top.str, "NOSCRIPT", 8) == 0;
}

static bool begins(const rl_reply *r, const char *words)
{
    return strncmp(r->top.str, words, strlen(words)) == 0;
}

bool rl_error_is_refusal(const rl_reply *r, bool single)
{
    static const char *const words[] = {"NOSCRIPT No matching script",
                                        "TRYAGAIN Multiple keys",
                                        "MOVED ",
                                        "ASK ",
                                        "CLUSTERDOWN ",
                                        "MASTERDOWN Link with MASTER",
                                        "LOADING "};
    if (!rl_reply_is(r, REDIS_REPLY_ERROR))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins(r, words[i]))
            return true;
    return single && (begins(r, "READONLY ") || strstr(r->top.str, ELSEWHERE));
}

bool rl_error_knows_no_line(const rl_reply *r)
{
    return begins(r, "ERR Error compiling script");
}

bool rl_error_is_for_the_line(const rl_reply *r)
{
    return rl_error_knows_no_line(r) || begins(r, "OOM ") ||
           begins(r, "NOREPLICAS ") || begins(r, "MISCONF ");
}
