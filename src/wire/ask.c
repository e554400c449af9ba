/*
 * Called by whoever drives the line, on its thread. What stays true: done() is
 * called exactly once, because each attempt ends exactly once (the line sees to
 * that) and is then either the last one or RL_ASK_AGAIN; `unknown` is never
 * taken back, as a later no says nothing of an attempt that is still under way.
 */
#include "wire/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "wire/error.h"

#define FIRST_PAUSE_US (10 * 1000)
#define LAST_PAUSE_US  (100 * 1000)

static void finish(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                   int64_t now_us)
{
    a->next = RL_ASK_FINAL;
    a->done(a, outcome, r, now_us);
}

static bool is_patient(const rl_ask *a)
{
    return a->patient && a->tries > 1;
}

/* Somebody else takes over, or has more to say a little later. */
static void rest(rl_ask *a, int64_t now_us)
{
    a->redirected = 0;
    a->pause_us =
        rl_min(rl_max(2 * a->pause_us, FIRST_PAUSE_US), LAST_PAUSE_US);
    a->rest_until_us = now_us + rl_jitter(a->pause_us);
    a->next = RL_ASK_RESTS;
}

/* An attempt failed, as *fault says; is there to be another one? */
static void attempt_failed(rl_ask *a, rl_outcome outcome, int64_t now_us)
{
    a->unknown = a->unknown || outcome == RL_UNKNOWN;
    if (a->tries > 0 && !is_patient(a))
        a->tries--;
    bool ends = (a->unknown && a->once) || (a->split && a->parts);
    if (a->tries > 0 && a->fault->transient && !ends) {
        bool sent_on = a->redirected > 0 && a->redirected <= RL_ASK_REDIRECTS;
        a->line = NULL; /* it may be gone by then */
        if (is_patient(a) && !sent_on)
            rest(a, now_us);
        else
            a->next = RL_ASK_AGAIN;
        return;
    }
    finish(a, a->unknown ? RL_UNKNOWN : RL_NOT_EXECUTED, NULL, now_us);
}

/* "MOVED 3999 127.0.0.1:6381": the slot; and where, in place. */
static bool read_place(char *text, unsigned *slot, char **host, int *port)
{
    char *at = strchr(text, ' '), *end, *colon;
    if (!at)
        return false;
    unsigned long n = strtoul(at + 1, &end, 10);
    colon = strrchr(end, ':');
    if (end == at + 1 || *end != ' ' || n > UINT16_MAX || !colon)
        return false;
    *slot = (unsigned)n;
    *host = end + 1;
    *colon = '\0';
    *port = atoi(colon + 1);
    if (strcmp(*host, "?") == 0) /* the server does not know its name */
        **host = '\0';
    return *port > 0 && *port <= UINT16_MAX;
}

static bool begins(const rl_reply *r, const char *word)
{
    return strncmp(r->top.str, word, strlen(word)) == 0;
}

/*
 * A server that has lost sight of another one names no place for it ("MOVED
 * 3999 :0"). The others may know, and it will hear of it.
 */
static void follow(rl_ask *a, const rl_reply *r)
{
    char text[RL_REPLY_TEXT], *host;
    unsigned slot;
    int port;
    a->fault->transient = true;
    strcpy(text, r->top.str);
    if (!read_place(text, &slot, &host, &port)) {
        a->redirected = 0;
        a->redirects->trouble(a->redirects);
        return;
    }
    if (begins(r, "ASK "))
        a->detour = a->redirects->ask(a->redirects, slot, host, port);
    else
        a->redirects->moved(a->redirects, slot, host, port);
    a->redirected++;
}

/* What has to do with where slots are. */
static void look_elsewhere(rl_ask *a, const rl_reply *r)
{
    a->detour = 0;
    a->split = begins(r, "TRYAGAIN");
    if (!a->redirects)
        return;
    if (begins(r, "MOVED ") || begins(r, "ASK ")) {
        follow(a, r);
        return;
    }
    a->redirected = 0;
    if (begins(r, "CLUSTERDOWN") || begins(r, "MASTERDOWN"))
        a->redirects->trouble(a->redirects);
}

static void refused(rl_ask *a, const rl_reply *r, int64_t now_us)
{
    const rl_error_kind *kind = rl_error_reply(r, a->fault);
    if (kind->elsewhere)
        a->line->retired = true;
    /*
     * The same attempt goes on: what the server lacks, it did not execute. The
     * script goes whole, unless another call has brought it meanwhile.
     */
    if (rl_error_is_noscript(r) && !a->whole && !a->last &&
        rl_line_speaks(a->line)) {
        a->whole =
            rl_ask_is_guarded(a) || a->line->brought[a->script] < a->slot.end;
        rl_ask_push(a, a->line, now_us);
        return;
    }
    look_elsewhere(a, r);
    attempt_failed(a, kind->definite ? RL_NOT_EXECUTED : RL_UNKNOWN, now_us);
}

/*
 * Refused for its first line: the same attempt goes on without that. What an
 * older server cannot check it does not, as little as one that just refuses
 * all that may write, be it a command that only reads, or frees memory.
 */
static bool goes_on_without_line(rl_ask *a, const rl_reply *r, int64_t now_us)
{
    if (!rl_ask_is_guarded(a) || !rl_ask_is_strict(a) || a->last ||
        !rl_line_speaks(a->line) || !rl_error_is_for_the_line(r))
        return false;
    if (rl_error_knows_no_line(r))
        a->line->lenient = true;
    else
        a->strict = false;
    a->whole = false;
    rl_ask_push(a, a->line, now_us);
    return true;
}

static void conclude(rl_ask *a, const rl_reply *r, int64_t now_us)
{
    bool error = rl_reply_is(r, REDIS_REPLY_ERROR);
    bool guarded = rl_ask_is_guarded(a);
    if (error && goes_on_without_line(a, r, now_us))
        return;
    if (error && (!guarded || rl_error_is_refusal(r, a->single))) {
        refused(a, r, now_us);
        return;
    }
    if (error && rl_error_reply(r, NULL)->elsewhere)
        a->line->retired = true;
    finish(a, RL_ANSWERED, r, now_us);
}

static void answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    rl_ask *a = RL_CONTAINER(s, rl_ask, slot);
    if (a->confirm.replicas && rl_confirm_keeps(&a->confirm, s, r, a->fault))
        return;
    rl_reply *kept = rl_confirm_end(&a->confirm);
    conclude(a, kept ? kept : r, now_us);
    free(kept);
}

static void failed(rl_slot *s, bool whole, const rl_fault *why, int64_t now_us)
{
    rl_ask *a = RL_CONTAINER(s, rl_ask, slot);
    rl_reply *kept = rl_confirm_end(&a->confirm);
    /* The server has waited for replicas, and executed nothing. */
    bool lacked = kept && rl_error_is_noscript(kept);
    if (kept && !lacked) {
        rl_confirm_broke(&a->confirm, why, a->fault);
        conclude(a, kept, now_us);
        free(kept);
        return;
    }
    free(kept);
    *a->fault = *why;
    a->detour = a->redirected = 0;
    a->split = false;
    a->whole = a->whole || lacked;
    attempt_failed(a, whole && !lacked ? RL_UNKNOWN : RL_NOT_EXECUTED, now_us);
}

void rl_ask_init(rl_ask *a, rl_script_id script, rl_fault *fault)
{
    a->slot.answered = answered;
    a->slot.failed = failed;
    a->slot.line = NULL;
    a->slot.raw = NULL;
    a->slot.subscribes = false;
    a->next = RL_ASK_IDLE;
    a->whole = a->last = a->split = a->parts = a->unknown = false;
    a->single = a->strict = a->patient = false;
    a->tries = RL_ASK_TRIES;
    a->send_by_us = RL_NEVER;
    a->script = script;
    a->once = rl_ask_is_guarded(a);
    a->line = NULL;
    a->fault = fault;
    a->loads = NULL;
    a->redirected = 0;
    a->detour = 0;
    a->redirects = NULL;
    a->pause_us = a->rest_until_us = 0;
    a->confirm = (rl_confirm){.replicas = 0};
}

void rl_ask_push(rl_ask *a, rl_line *l, int64_t now_us)
{
    a->line = l;
    a->slot.replies = rl_ask_is_guarded(a) ? 0 : rl_scripts[a->script].replies;
    a->sent_us = now_us;
    a->next = RL_ASK_WAITS;
    if (a->whole && a->loads)
        atomic_fetch_add_explicit(a->loads, 1, memory_order_relaxed);
    a->slot.preface = a->detour ? 1 : 0;
    if (a->detour) {
        rl_put_array(rl_line_begin(l), 1);
        rl_put_text(rl_line_begin(l), "ASKING");
    }
    a->write(a, rl_line_begin(l));
    if (rl_line_push(l, &a->slot)) {
        if (a->whole && !rl_ask_is_guarded(a))
            l->brought[a->script] = a->slot.end;
        if (a->confirm.replicas)
            rl_confirm_push(&a->confirm, &a->slot,
                            (a->until_us - now_us) / 1000);
        return;
    }
    a->tries = 0;
    if (!rl_line_speaks(l))
        *a->fault = l->fault;
    else
        rl_fault_set(a->fault, RLOCK_ENOMEM, 0, "out of memory");
    attempt_failed(a, RL_NOT_EXECUTED, now_us);
}

void rl_ask_wake(rl_ask *a, int64_t now_us)
{
    if (a->next == RL_ASK_RESTS && now_us >= a->rest_until_us)
        a->next = RL_ASK_AGAIN;
}

void rl_ask_miss(rl_ask *a, int64_t now_us)
{
    a->detour = a->redirected = 0;
    attempt_failed(a, RL_NOT_EXECUTED, now_us);
}

void rl_ask_give_up(rl_ask *a, int64_t now_us)
{
    finish(a, a->unknown ? RL_UNKNOWN : RL_NOT_EXECUTED, NULL, now_us);
}

void rl_ask_refuse(rl_ask *a, int64_t now_us)
{
    a->tries = 0;
    rl_ask_give_up(a, now_us);
}

bool rl_ask_is_refused(const rl_ask *a, rl_outcome outcome)
{
    if (!a->line || a->line->failed || a->line->retired)
        return false;
    return outcome == RL_ANSWERED ||
           (!a->fault->transient && a->fault->status != RLOCK_ENOMEM);
}
