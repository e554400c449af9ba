/*
 * What is asked about a lock, whoever has it: who that is, that it be freed,
 * that this client stand in its queue no more, that its tokens go on from one.
 */
#include "op/verb_query.h"

#include <rlock/rw.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "op/call.h"
#include "op/verb.h"

/* Room for who has a lock in a message that has to hold the rest, too. */
#define WHO_SHOWN 120

/* The last colon before this one, or NULL. */
static const char *colon_before(const char *text, const char *end)
{
    while (end > text && *--end != ':')
        ;
    return end > text ? end : NULL;
}

void rl_holder_clean(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == ':' || *p == 127)
            *p = '_';
}

/* "tid", or "tid/label"; up to the colon at end. */
static bool parse_owner(rlock_holder *out, const char *text, const char *end)
{
    char *rest;
    long long tid = strtoll(text, &rest, 10);
    size_t len = rest < end ? (size_t)(end - rest) - 1 : 0;
    if (rest == text || (rest != end && *rest != '/') ||
        len >= sizeof out->owner)
        return false;
    out->tid = tid;
    memcpy(out->owner, rest + 1, len);
    return true;
}

bool rl_parse_holder(rlock_holder *out)
{
    const char *raw = out->raw, *end = raw + strlen(raw);
    const char *uuid = colon_before(raw, end);
    const char *tid = uuid ? colon_before(raw, uuid) : NULL;
    const char *pid = tid ? colon_before(raw, tid) : NULL;
    if (!pid || end - uuid - 1 != RL_UUID_LEN ||
        (size_t)(pid - raw) >= sizeof out->host)
        return false;
    char *rest;
    long long pid_number = strtoll(pid + 1, &rest, 10);
    if (rest != tid || rest == pid + 1)
        return false;
    if (!parse_owner(out, tid + 1, uuid))
        return false;
    out->pid = pid_number;
    memcpy(out->host, raw, (size_t)(pid - raw));
    memcpy(out->hold_id, uuid + 1, RL_UUID_LEN + 1);
    return true;
}

/* <uuid>:<thread>, as Redisson writes it. */
static bool is_redissons(const char *text)
{
    for (int i = 0; i < 5; i++) {
        size_t n = strspn(text, "0123456789abcdefABCDEF");
        if (n == 0 || text[n] != (i < 4 ? '-' : ':'))
            return false;
        text += n + 1;
    }
    text += *text == '-';
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && text[digits] == '\0';
}

/* Of a timestamp only what ours has behind the time tells whose it is: the last
   48 bits of the uuid, as lua/timestamp/stamp.lua writes them. */
static bool read_stamp(const char *text, rlock_holder *out)
{
    size_t seconds = strspn(text, "0123456789");
    if (seconds == 0 || strncmp(text + seconds, ".0", 2) != 0)
        return false;
    const char *bits = text + seconds + 2;
    if (strspn(bits, "0123456789") != 15 || bits[15] != '\0')
        return false;
    long long tail = strtoll(bits, NULL, 10);
    snprintf(out->raw, sizeof out->raw, "00000000-0000-0000-0000-%012llx",
             (unsigned long long)tail);
    return tail >> 48 == 0;
}

bool rl_read_holder_id(rlock_layout layout, const char *text, rlock_holder *out)
{
    size_t len = strlen(text);
    memset(out, 0, sizeof *out);
    if (len == 0 || len >= sizeof out->raw)
        return false;
    memcpy(out->raw, text, len);
    bool ours = rl_parse_holder(out);
    if (layout == RLOCK_LAYOUT_STRING)
        return true; /* any program's may look like anything */
    if (layout == RLOCK_LAYOUT_TIMESTAMP)
        return ours || read_stamp(text, out);
    return ours || is_redissons(text);
}

bool rl_is_same_hold(const rlock_holder *a, const rlock_holder *b)
{
    return *a->hold_id ? strcmp(a->hold_id, b->hold_id) == 0
                       : strcmp(a->raw, b->raw) == 0;
}

/* Without the uuid, which tells people nothing; another program's as it is. */
static void write_who(char *out, size_t size, const rl_item *who)
{
    rlock_holder h = {0};
    size_t len = (size_t)rl_min((int64_t)who->len, sizeof h.raw - 1);
    memcpy(h.raw, who->str, len);
    if (rl_parse_holder(&h))
        len -= 1 + RL_UUID_LEN;
    rl_printable(out, size, h.raw, len);
}

void rl_fault_busy(rl_fault *f, const rl_item *who, size_t n)
{
    char name[WHO_SHOWN];
    bool known =
        n == 2 && rl_item_is(&who[0], REDIS_REPLY_STRING) && who[0].len > 0;
    long long ms = known ? rl_item_number(&who[1]) : -1;
    if (known)
        write_who(name, sizeof name, &who[0]);
    if (!known && n == 2 && rl_item_is(&who[0], REDIS_REPLY_INTEGER))
        rl_fault_set(f, RLOCK_BUSY, 0, "%lld are free, and %lld wait",
                     (long long)who[0].integer, (long long)who[1].integer);
    else if (ms < 0)
        rl_fault_set(f, RLOCK_BUSY, 0, "held by %s", known ? name : "another");
    else
        rl_fault_set(f, RLOCK_BUSY, 0, "held by %s for %lld.%lld s", name,
                     ms / 1000, ms / 100 % 10);
}

rlock_status rl_read_holder(const rl_reply *r, rlock_holder *out, rl_fault *f)
{
    const rl_item *item = r->item;
    if (r->count == 0)
        return RLOCK_NOT_HELD;
    if (r->count != 3 || !item[0].str || item[0].len >= sizeof out->raw)
        return rl_fault_set(f, RLOCK_EIO, 0, "unexpected reply to inspect");
    memcpy(out->raw, item[0].str, item[0].len + 1);
    out->count = rl_item_number(&item[1]);
    out->ttl_ms = rl_item_number(&item[2]);
    rl_parse_holder(out);
    return RLOCK_OK;
}

/* --- inspect -------------------------------------------------------------- */

static void note_holder(rl_part *x, const rl_reply *r, int64_t now_us)
{
    rlock_holder ignored;
    (void)now_us;
    if (!r)
        return;
    rlock_status s =
        rl_read_holder(r, x->holder ? x->holder : &ignored, &x->fault);
    x->ok = s == RLOCK_OK || s == RLOCK_NOT_HELD;
    x->code = s == RLOCK_OK;
}

static void write_inspect(const rl_part *x, rl_bytes *to)
{
    const char *wanted = x->holder ? x->holder->raw : "";
    rl_call_inspect(to, x->ask.whole, x->what, *wanted ? wanted : NULL);
}

static const rl_verb inspect = {.write = write_inspect, .note = note_holder};

void rl_part_inspect(rl_part *x, rl_core *c, const rl_target *what,
                     rlock_holder *out, int64_t now_us)
{
    rl_part_begin(x, c, &inspect, rl_target_layout(what)->inspect, now_us);
    x->what = what;
    x->holder = out;
}

/* The size is the caller's. */
static void note_state(rl_part *x, const rl_reply *r, int64_t now_us)
{
    (void)now_us;
    x->ok = r && r->count == 4;
    if (r && !x->ok)
        rl_fault_set(&x->fault, RLOCK_EIO, 0, "unexpected reply to inspect");
    if (!x->ok)
        return;
    x->state->mode = (int)rl_item_number(&r->item[0]);
    x->state->holders = rl_item_number(&r->item[1]);
    x->state->waiting = rl_item_number(&r->item[2]);
    x->state->ttl_ms = rl_item_number(&r->item[3]);
}

static void write_state(const rl_part *x, rl_bytes *to)
{
    rl_call_rw_state(to, x->ask.whole, x->what);
}

static const rl_verb state = {.write = write_state, .note = note_state};

void rl_part_rw_state(rl_part *x, rl_core *c, const rl_target *what,
                      rlock_rw_state *out, int64_t now_us)
{
    rl_part_begin(x, c, &state, RL_SCRIPT_RW_STATE, now_us);
    x->what = what;
    x->state = out;
}

/* --- a token, and by force ------------------------------------------------ */

static void write_raise(const rl_part *x, rl_bytes *to)
{
    rl_call_raise(to, x->ask.whole, x->hold, x->request.least);
}

static const rl_verb raise_token = {.write = write_raise, .note = rl_note_code};

void rl_part_raise(rl_part *x, rl_core *c, rl_hold *h, uint64_t token,
                   int64_t now_us)
{
    rl_part_begin(x, c, &raise_token, RL_SCRIPT_RAISE, now_us);
    x->hold = h;
    x->request.least = token;
}

/* It tells whether somebody was rung, too. Not held, after a try whose answer
   was lost: perhaps it was that one. */
static void note_release_of(rl_part *x)
{
    rl_fault was = x->fault;
    x->code = x->code > 0;
    x->ok = x->code > 0 || !x->ask.unknown;
    if (!x->ok)
        rl_fault_set(&x->fault, RLOCK_EIO, was.sys_errno,
                     "it may have been freed, as an answer was lost (%.120s)",
                     was.text);
}

/*
 * Whoever held what was forced, the next one here has nobody to think of it.
 * When the answer is late, the name has gone with the op.
 */
static void note_force(rl_part *x, const rl_reply *r, int64_t now_us)
{
    rl_note_code(x, r, now_us);
    if (x->ok && x->holder_id)
        note_release_of(x);
    if (x->op)
        rl_rooms_look(&x->core->rooms, x->what->name, x->what->len,
                      x->what->scope, true);
}

static void write_force(const rl_part *x, rl_bytes *to)
{
    if (x->holder_id)
        rl_call_release_of(to, x->ask.whole, x->what, x->holder_id);
    else
        rl_call_force_release(to, x->ask.whole, x->what);
}

static const rl_verb force = {.write = write_force, .note = note_force};

/* Asked twice, it could free the lock of whoever was woken by the first, but not
   when it says whose hold it means. */
void rl_part_force(rl_part *x, rl_core *c, const rl_target *what,
                   const char *holder_id, int64_t now_us)
{
    const rl_layout *l = rl_target_layout(what);
    rl_part_begin(x, c, &force, holder_id ? l->release : l->force_release,
                  now_us);
    x->ask.once = !holder_id;
    x->what = what;
    x->holder_id = holder_id;
}

/* --- leave ---------------------------------------------------------------- */

/* Somebody may have queued meanwhile, whom this has taken out. */
static void note_leave(rl_part *x, const rl_reply *r, int64_t now_us)
{
    (void)now_us;
    if (x->outcome != RL_NOT_EXECUTED)
        rl_rooms_wake(&x->core->rooms, x->what->name, x->what->len,
                      RL_WAKE_LOOK);
    x->ok = r != NULL;
    if (r && r->count > 1 && r->item[1].str && r->item[1].len == 0)
        rl_fault_set(&x->fault, RLOCK_BUSY, 0,
                     "free by now, or held by somebody who is not told");
    else if (r)
        rl_fault_busy(&x->fault, &r->item[1], r->count - 1);
}

static void write_leave(const rl_part *x, rl_bytes *to)
{
    rl_call_leave(to, x->ask.whole, x->what->name, x->what->len, x->core->bell,
                  x->core->set.grants);
}

static const rl_verb leave = {
    .write = write_leave, .note = note_leave, .has_name = true};

void rl_part_leave(rl_part *x, rl_core *c, const rl_target *what,
                   int64_t now_us)
{
    rl_part_begin(x, c, &leave, RL_SCRIPT_LEAVE, now_us);
    x->what = what;
}

typedef struct named_part {
    rl_part part;
    rl_target what;
    char name[];
} named_part;

rl_part *rl_part_new_leave(rl_core *c, const rl_target *what, int64_t now_us)
{
    named_part *n = malloc(sizeof *n + what->len + 1);
    if (!n)
        return NULL;
    n->part = (rl_part){.heap = true};
    n->what = *what;
    n->what.name = memcpy(n->name, what->name, what->len);
    n->name[what->len] = '\0';
    rl_part_leave(&n->part, c, &n->what, now_us);
    return &n->part;
}
