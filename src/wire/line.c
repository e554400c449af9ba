/*
 * A line's bytes are counted from its beginning, so that a slot knows by one
 * comparison whether its command has been sent whole. hiredis' reader parses;
 * it builds no objects, but fills the line's one reply (wire/reply.c).
 *
 * What stays true: every slot in the queue has its command in `out`, or sent
 * before; a command is in `out` whole or not at all; a failed line has no
 * slots. Callbacks may push other slots, and may fail the line, which is looked
 * at after each.
 */
#include "wire/line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/error.h"

#define REPLY_BUDGET (64 * 1024) /* bytes of one reply, before it is whole */

/* What a line keeps its memory for; after more, it is better made anew. */
#define MOST_KEPT (1024 * 1024)

bool rl_line_init(rl_line *l)
{
    *l = (rl_line){0};
    rl_list_init(&l->slots);
    l->reader = redisReaderCreateWithFunctions(&rl_reply_builder);
    if (!l->reader)
        return false;
    l->reader->privdata = &l->reply;
    /* A large buffer that it gave back, it would have to get anew, and older
       versions abort where there is no memory for that. */
    l->reader->maxbuf = 0;
    l->budget = REPLY_BUDGET;
    return true;
}

void rl_line_fini(rl_line *l)
{
    if (l->reader)
        redisReaderFree(l->reader);
    rl_bytes_fini(&l->out);
}

bool rl_line_push(rl_line *l, rl_slot *s)
{
    size_t known = (size_t)(l->written - l->sent);
    if (l->out.lacking || l->failed || l->mute) {
        rl_bytes_cut(&l->out, l->out.begin + known);
        return false;
    }
    l->written = l->sent + rl_bytes_left(&l->out);
    if (!s)
        return true;
    s->end = l->written;
    s->line = l;
    s->more = 0;
    rl_list_add_last(&l->slots, &s->link);
    l->pending++;
    return true;
}

void rl_line_sent(rl_line *l, size_t n)
{
    l->sent += n;
    rl_bytes_sent(&l->out, n);
}

void rl_line_take(rl_line *l, rl_bytes *into)
{
    rl_bytes empty = *into;
    rl_bytes_cut(&empty, 0);
    *into = l->out;
    l->out = empty;
    l->sent = l->written;
}

static rl_slot *take_first(rl_line *l)
{
    rl_slot *s = rl_line_first(l);
    if (s) {
        rl_list_remove(&s->link);
        l->pending--;
        s->line = NULL;
    }
    return s;
}

void rl_line_fail(rl_line *l, const rl_fault *why, int64_t now_us)
{
    rl_slot *s;
    if (!l->failed) {
        l->fault = *why;
        l->failed_us = now_us;
    }
    l->failed = true;
    while ((s = take_first(l)) != NULL)
        s->failed(s, s->end <= l->sent, &l->fault, now_us);
}

void rl_line_drop(rl_line *l, const rl_fault *why, size_t unsent,
                  int64_t now_us)
{
    rl_link *last;
    uint64_t sent = l->sent - unsent;
    if (rl_line_speaks(l))
        l->fault = *why;
    l->mute = true;
    rl_bytes_cut(&l->out, l->out.begin);
    l->written = l->sent;
    while ((last = rl_list_last(&l->slots)) != NULL) {
        rl_slot *s = RL_CONTAINER(last, rl_slot, link);
        if (s->end <= sent)
            break;
        rl_list_remove(last);
        l->pending--;
        s->line = NULL;
        s->failed(s, false, why, now_us);
    }
}

static void set_timed_out(rl_fault *f, bool sent)
{
    rl_fault_set(f, RLOCK_EIO, ETIMEDOUT, "%s: %s",
                 sent ? "no reply" : "cannot send", strerror(ETIMEDOUT));
}

void rl_line_time_out(rl_line *l, int64_t now_us)
{
    rl_fault f;
    set_timed_out(&f, l->sent == l->written);
    rl_line_fail(l, &f, now_us);
}

static void stray_answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    (void)r;
    (void)now_us;
    free(s);
}

static void stray_failed(rl_slot *s, bool whole, const rl_fault *why,
                         int64_t now_us)
{
    (void)whole;
    (void)why;
    (void)now_us;
    free(s);
}

/* The slot has left; in its place is one that belongs to nobody. False: out of
   memory. */
static bool leave_stray(rl_slot *s)
{
    rl_slot *stray = malloc(sizeof *stray);
    if (!stray)
        return false;
    *stray = *s;
    stray->answered = stray_answered;
    stray->failed = stray_failed;
    rl_list_add_before(&s->link, &stray->link);
    rl_list_remove(&s->link);
    s->line = NULL;
    return true;
}

void rl_line_abandon(rl_line *l, rl_slot *s, int64_t now_us)
{
    rl_fault f;
    bool sent = s->end <= l->sent;
    set_timed_out(&f, sent);
    l->retired = true;
    if (!sent)
        rl_line_drop(l, &f, 0, now_us);
    else if (leave_stray(s))
        s->failed(s, true, &f, now_us);
    else
        rl_line_fail(l, &f, now_us);
}

static bool fail(rl_line *l, rlock_status status, const char *what,
                 int64_t now_us)
{
    rl_fault f;
    rl_fault_set(&f, status, 0, "%s", what);
    f.transient = true;
    rl_line_fail(l, &f, now_us);
    return false;
}

/* A server that turns clients away says why before it is asked anything. */
static bool unasked(rl_line *l, const rl_reply *r, int64_t now_us)
{
    rl_fault f;
    if (!rl_reply_is(r, REDIS_REPLY_ERROR))
        return fail(l, RLOCK_EIO,
                    "an answer came that nobody had asked for: no Redis "
                    "server, or a proxy mixed up answers",
                    now_us);
    rl_error_reply(r, &f);
    rl_line_fail(l, &f, now_us);
    return false;
}

/* Then the replies after it may be others' as well. */
static bool unexpected(rl_line *l, int64_t now_us)
{
    return fail(l, RLOCK_EIO,
                "unexpected reply: no Redis server, or a proxy mixed up "
                "answers",
                now_us);
}

static bool may_answer(const rl_slot *s, const rl_reply *r)
{
    if (rl_reply_is(r, REDIS_REPLY_ERROR))
        return true;
    if (s->subscribes != rl_reply_is_subscription(r))
        return false;
    return !s->replies || s->preface > 0 || rl_reply_is_of(r, s->replies);
}

/* Whose reply is next; with its last one it leaves the queue. */
static rl_slot *take_answered(rl_line *l)
{
    rl_slot *first = rl_line_first(l);
    if (first->more == 0)
        return take_first(l);
    first->more--;
    return first;
}

/* Is it the listener's, whoever has asked what? */
static bool is_heard(const rl_line *l, const rl_slot *first, const rl_reply *r)
{
    return !first || rl_reply_is_message(r) ||
           (l->pushed && !first->subscribes && rl_reply_is_subscription(r));
}

/* A message is told to nobody, if nobody listens here (any more). */
static bool hear(rl_line *l, const rl_reply *r, int64_t now_us)
{
    if (!l->pushed)
        return rl_reply_is_message(r) || unasked(l, r, now_us);
    l->pushed(l->arg, r);
    return !l->failed;
}

/* Who is answered next; NULL: nobody, for all that was sent has been. */
static rl_slot *first_asked(const rl_line *l)
{
    rl_slot *first = rl_line_first(l);
    return first && first->end <= l->sent ? first : NULL;
}

/* A reply is whole: to the one that asked first. */
bool rl_line_answer(rl_line *l, const rl_reply *r, int64_t now_us)
{
    rl_slot *first = first_asked(l);
    if (is_heard(l, first, r))
        return hear(l, r, now_us);
    if (!may_answer(first, r))
        return unexpected(l, now_us);
    if (first->preface > 0) {
        first->preface--;
        return true;
    }
    rl_slot *s = take_answered(l);
    s->answered(s, r, now_us);
    return l->odd && !l->failed ? unexpected(l, now_us) : !l->failed;
}

static bool has_input(const rl_line *l)
{
    return l->reader->pos != l->reader->len;
}

/* The object that the reply under way, or the next one, is built in. */
static rl_raw_reply *object_of(const rl_line *l)
{
    return l->reader->fn == &rl_raw_reply_builder ? l->reader->privdata : NULL;
}

static bool malformed(rl_line *l, int64_t now_us)
{
    rl_fault f;
    const redisReader *reader = l->reader;
    const rl_raw_reply *o = object_of(l);
    if (reader->err == REDIS_ERR_OOM && o && !o->refused)
        return fail(l, RLOCK_ENOMEM, "no reply: out of memory", now_us);
    rl_fault_set(&f, RLOCK_EIO, 0, "not a Redis reply: %s",
                 reader->err == REDIS_ERR_OOM ? "unexpected size or shape"
                                              : reader->errstr);
    rl_line_fail(l, &f, now_us);
    return false;
}

/*
 * Whose reply begins now, how is it built? What is sent before it has come
 * whole, it does not answer.
 */
static void choose_builder(rl_line *l)
{
    const rl_slot *first = first_asked(l);
    rl_raw_reply *o = first && first->preface == 0 ? first->raw : NULL;
    if (l->reader->ridx != -1)
        return;
    l->asked = first != NULL;
    l->reader->fn = o ? &rl_raw_reply_builder : &rl_reply_builder;
    l->reader->privdata = o ? (void *)o : &l->reply;
    if (o)
        rl_raw_reply_begin(o);
}

/* A reply is whole. */
static bool take_reply(rl_line *l, void *reply, int64_t now_us)
{
    rl_raw_reply *o = object_of(l);
    if (o) {
        l->reader->fn = &rl_reply_builder;
        l->reader->privdata = &l->reply;
        rl_raw_reply_end(o, reply, &l->reply);
        l->retired =
            l->retired || o->bytes > MOST_KEPT || l->out.room > MOST_KEPT;
    }
    return l->asked ? rl_line_answer(l, &l->reply, now_us)
                    : hear(l, &l->reply, now_us);
}

bool rl_line_feed(rl_line *l, const char *bytes, size_t n, int64_t now_us)
{
    void *reply;
    if (l->failed)
        return false;
    if (redisReaderFeed(l->reader, bytes, n) != REDIS_OK)
        return fail(l, RLOCK_ENOMEM, "no reply: out of memory", now_us);
    /* Without input the reader would begin a reply all the same. */
    while (has_input(l)) {
        reply = NULL;
        choose_builder(l);
        if (redisReaderGetReply(l->reader, &reply) != REDIS_OK)
            return malformed(l, now_us);
        if (!reply)
            break;
        if (!take_reply(l, reply, now_us))
            return false;
    }
    size_t budget = object_of(l) ? RL_RAW_REPLY_BYTES : l->budget;
    if (l->reader->len - l->reader->pos > budget)
        return fail(l, RLOCK_EIO, "not a Redis reply: too long", now_us);
    return true;
}

bool rl_line_is_mid_reply(const rl_line *l)
{
    return has_input(l) || l->reader->ridx != -1;
}
