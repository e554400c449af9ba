/* Tells which locks there are, and which semaphores: of all that side keys, or types,
   tell of. */
#include <rlock/scan.h>

#include "base/glob.h"
#include "client/found.h"
#include "client/survey.h"
#include "op/call.h"

typedef struct scanning {
    rl_survey survey;
    rl_found found;
    const char *glob; /* NULL: all */
} scanning;

static void put_hrandfield(rl_bytes *to, const char *name, size_t len)
{
    rl_put_array(to, 2);
    rl_put_text(to, "HRANDFIELD");
    rl_put_bytes(to, name, len);
}

/* A byte more than a holder id may have, so that a longer text is known. */
static void put_getrange(rl_bytes *to, const char *name, size_t len)
{
    rl_put_array(to, 4);
    rl_put_text(to, "GETRANGE");
    rl_put_bytes(to, name, len);
    rl_put_number(to, 0);
    rl_put_number(to, (int64_t)sizeof((rlock_holder *)0)->raw - 1);
}

static bool is_meant(const scanning *g, const char *name, size_t len)
{
    return !g->glob || rl_glob_fits(g->glob, name, len);
}

static void write_question(rl_bytes *to, bool whole, const char *name,
                           const rl_name *lock)
{
    rl_call_survey(to, whole, name, lock->len, lock->in_line, lock->permits);
}

/* "{a}" is guessed when "a" has been asked about. */
static bool wants(rl_survey *s, const char *name, size_t len)
{
    const scanning *g = RL_CONTAINER(s, scanning, survey);
    char twin[RLOCK_NAME_MAX];
    size_t twin_len = rl_name_in_braces(name, len, twin);
    return is_meant(g, name, len) ||
           (twin_len > 0 && is_meant(g, twin, twin_len));
}

static bool note(rl_survey *s, rl_name lock, const rl_reply *r)
{
    scanning *g = RL_CONTAINER(s, scanning, survey);
    return rl_found_note(&g->found, lock, r);
}

static rlock_status ask(scanning *g, rlock_client *cl)
{
    const rl_pass pass[] = {
        {.match = "rlock_[qlt]*", .take = rl_names_of_side_key},
        {.match = "*:timeout", .type = "zset", .take = rl_names_of_permits},
        {.match = g->glob,
         .type = "hash",
         .take = rl_names_of_lock,
         .ask = put_hrandfield,
         .fits = rl_found_is_hash},
        {.match = g->glob,
         .type = "string",
         .take = rl_names_of_lock,
         .ask = put_getrange,
         .fits = rl_found_is_string},
    };
    bool all = g->found.flags & RLOCK_SCAN_ALL;
    g->survey = (rl_survey){.pass = pass,
                            .passes = all ? 4 : 2,
                            .names = &g->found.names,
                            .wants = wants,
                            .script = RL_SCRIPT_SURVEY,
                            .write = write_question,
                            .note = note};
    rlock_status s = rl_survey_make(&g->survey, cl);
    if (s == RLOCK_OK && !rl_found_sort(&g->found))
        s = rl_error_set(RLOCK_ENOMEM, 0, "out of memory");
    return s;
}

rlock_status rlock_scan(rlock_client *cl, const char *glob, unsigned flags,
                        rlock_scan_fn *each, void *arg)
{
    scanning g = {.glob = glob};
    rlock_lock_info told;
    rlock_holder holder;
    bool more = true;
    if (!cl || !each)
        return rl_error_set(RLOCK_EINVAL, 0, "%s is NULL",
                            cl ? "the callback" : "the client");
    if (flags & ~(RLOCK_SCAN_ALL | RLOCK_SCAN_IDLE))
        return rl_error_set(RLOCK_EINVAL, 0, "no such flag: %#x", flags);
    rl_found_init(&g.found, flags);
    rlock_status s = ask(&g, cl);
    for (size_t i = 0; s == RLOCK_OK && more && i < g.found.n; i++) {
        rl_found_tell(&g.found, i, &told, &holder);
        if (is_meant(&g, told.name, told.name_len))
            more = each(&told, arg);
    }
    rl_found_fini(&g.found);
    return s;
}
