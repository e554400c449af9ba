/* Asks who waits for whom: of each queue, and each line, there is. */
#include <stdlib.h>

#include "client/survey.h"
#include "client/waits_graph.h"
#include "op/call.h"

static void begin(rl_survey *s, rl_name lock)
{
    rl_waits_begin(RL_CONTAINER(s->names, rl_waits, names), lock);
}

static void write_question(rl_bytes *to, bool whole, const char *name,
                           const rl_name *lock)
{
    rl_call_waits(to, whole, name, lock->len, lock->in_line, lock->kind);
}

static rlock_status ask(rlock_client *cl, rl_waits *into)
{
    static const rl_pass queues = {.match = "rlock_[ql]*",
                                   .take = rl_names_of_waits};
    rl_survey s = {.pass = &queues,
                   .passes = 1,
                   .names = &into->names,
                   .script = RL_SCRIPT_WAITS,
                   .write = write_question,
                   .sink = &into->reply,
                   .begin = begin};
    rlock_status status = rl_survey_make(&s, cl);
    if (status == RLOCK_OK && !rl_waits_find_circles(into))
        status = rl_error_set(RLOCK_ENOMEM, 0, "out of memory");
    return status;
}

static rlock_status tell_each(const rl_waits *w, rlock_waits_fn *each,
                              void *arg)
{
    rlock_wait told;
    rlock_holder waiter;
    rlock_holder *holders = malloc(RL_WAITS_TOLD * sizeof *holders);
    if (!holders)
        return rl_error_set(RLOCK_ENOMEM, 0, "out of memory");
    for (size_t i = 0; i < w->n; i++) {
        rl_waits_tell(w, i, &told, &waiter, holders);
        each(&told, arg);
    }
    free(holders);
    return RLOCK_OK;
}

rlock_status rlock_waits_for(rlock_client *cl, rlock_waits_fn *each, void *arg)
{
    rl_waits w;
    if (!cl || !each)
        return rl_error_set(RLOCK_EINVAL, 0, "%s is NULL",
                            cl ? "the callback" : "the client");
    rl_waits_init(&w);
    rlock_status s = ask(cl, &w);
    if (s == RLOCK_OK)
        s = tell_each(&w, each, arg);
    rl_waits_fini(&w);
    return s;
}
