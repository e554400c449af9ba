#include "client/found.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "op/verb_query.h"

/* In a reply. */
enum { CLOCK, FIELDS, HOLDER, COUNT, PTTL, WAITING, TOKEN, ITEMS };

/* Of a string that is a unix time: what is no time of this century is text. */
enum { SECONDS_LEAST = 10, SECONDS_MOST = 13 };

void rl_found_init(rl_found *f, unsigned flags)
{
    *f = (rl_found){.flags = flags};
    rl_names_keep(&f->names, "", 0);
}

void rl_found_fini(rl_found *f)
{
    rl_names_fini(&f->names);
    free(f->at);
}

static void read_text(const rl_item *i, rlock_holder *out)
{
    size_t len = (size_t)rl_min((int64_t)i->len, sizeof out->raw - 1);
    memset(out, 0, sizeof *out);
    memcpy(out->raw, i->str, len);
}

/* As lua/timestamp/stamp.lua reads it, in ms; -1: it is no time. */
static int64_t free_at_ms(const char *text)
{
    char *end;
    size_t digits = strspn(text, "0123456789");
    if (digits < SECONDS_LEAST || digits > SECONDS_MOST)
        return -1;
    int64_t ms = strtoll(text, &end, 10) * 1000;
    if (*end == '.')
        end++;
    for (int64_t tenth = 100; *end >= '0' && *end <= '9'; end++, tenth /= 10)
        ms += (*end - '0') * tenth;
    return *end ? -1 : ms;
}

/* --- which layout, and who has it ----------------------------------------- */

static void note_stamp(rl_find *x, rlock_holder *h, int64_t left_ms)
{
    rlock_holder ignored;
    x->layout = RLOCK_LAYOUT_TIMESTAMP;
    x->ours = rl_read_holder_id(x->layout, h->raw, &ignored);
    x->held = left_ms >= 0;
    x->ttl_ms = left_ms;
}

/* What else is a number is a count: of a latch, or of a semaphore, which may be
   below 0. */
static bool is_count(const char *text)
{
    const char *digits = text + (*text == '-');
    size_t n = strspn(digits, "0123456789");
    return n > 0 && !digits[n] && free_at_ms(text) < 0;
}

/* False: it is no lock. */
static bool note_string(rl_find *x, rlock_holder *h, int64_t clock_ms)
{
    int64_t at_ms = free_at_ms(h->raw);
    if (is_count(h->raw))
        return false;
    if (at_ms >= 0) {
        note_stamp(x, h, at_ms - clock_ms);
        return true;
    }
    x->layout = RLOCK_LAYOUT_STRING;
    x->ours = rl_parse_holder(h);
    return x->held = true;
}

/* False: it is no lock, but somebody's data. */
static bool note_hash(rl_find *x, rlock_holder *h)
{
    rlock_holder ignored;
    x->held =
        rl_read_holder_id(RLOCK_LAYOUT_HASH, h->raw, &ignored) && x->count > 0;
    x->ours = x->held && rl_parse_holder(h);
    return x->held;
}

/* "read 2", or "write 1": a side's level, of a hash that has a mode, too. False: it
   is no read-write lock. */
static bool note_side(rl_find *x, const rl_reply *r)
{
    rlock_holder h;
    const char *count = r->item[COUNT].str;
    bool reads = strncmp(count, "read ", 5) == 0;
    if (r->item[FIELDS].integer < 2 ||
        !(reads || strncmp(count, "write ", 6) == 0))
        return false;
    read_text(&r->item[HOLDER], &h);
    x->count = atoll(count + (reads ? 5 : 6));
    if (!note_hash(x, &h))
        return false;
    x->kind = reads ? RLOCK_KIND_READ : RLOCK_KIND_WRITE;
    x->holders = reads ? r->item[FIELDS].integer - 1 : 1;
    return true;
}

/* "permits 2 5": one has two of them, five are free. False: it is no semaphore. */
static bool note_permits(rl_find *x, const rl_reply *r)
{
    static const char says[] = "permits ";
    rlock_holder h;
    char *end;
    const char *count = r->item[COUNT].str;
    if (strncmp(count, says, sizeof says - 1) != 0)
        return false;
    read_text(&r->item[HOLDER], &h);
    x->kind = RLOCK_KIND_PERMIT;
    x->holders = r->item[FIELDS].integer;
    x->held = x->holders > 0;
    x->ours = rl_parse_holder(&h);
    x->count = strtoll(count + sizeof says - 1, &end, 10);
    x->available = strtoll(end, NULL, 10);
    return true;
}

static bool note_holder(rl_find *x, const rl_reply *r, int64_t clock_us)
{
    rlock_holder h;
    long long fields = r->item[FIELDS].integer;
    read_text(&r->item[HOLDER], &h);
    if (fields == -1)
        return note_string(x, &h, clock_us / 1000);
    return fields == 1 ? note_hash(x, &h) : fields == 0;
}

/* The last token is the clock at the holder's acquire, if he mints any; who reads
   may have that of others, who came before. */
static void note_token(rl_find *x, const rl_reply *r, int64_t clock_us)
{
    int64_t token = rl_max(rl_item_number(&r->item[TOKEN]), 0);
    if (x->held && !x->ours)
        return;
    x->token = (uint64_t)token;
    if (x->held && token > 0 && x->kind != RLOCK_KIND_READ)
        x->held_ms = rl_max(clock_us - token, 0) / 1000;
}

/* --- taking --------------------------------------------------------------- */

static bool is_sound(const rl_reply *r)
{
    const rl_item *i = r->item;
    return r->count == ITEMS && i[CLOCK].str && i[HOLDER].str && i[COUNT].str &&
           i[TOKEN].str && i[FIELDS].type == REDIS_REPLY_INTEGER &&
           i[PTTL].type == REDIS_REPLY_INTEGER &&
           i[WAITING].type == REDIS_REPLY_INTEGER;
}

/* The token of one that was guessed may be the other's; and permits tell of nothing
   else. */
static bool is_told(const rl_found *f, rl_name lock, const rl_find *x)
{
    if (lock.guessed && lock.permits && x->kind != RLOCK_KIND_PERMIT)
        return false;
    bool idle = x->token > 0 && (f->flags & RLOCK_SCAN_IDLE) && !lock.guessed;
    return x->held || x->waiting > 0 || idle;
}

static bool keep(rl_found *f, rl_find *x, const rl_item *holder)
{
    rl_find *all = rl_names_more(&f->names, f->at, sizeof *all, f->n, &f->room);
    if (!all)
        return false;
    f->at = all;
    if (x->held)
        x->holder = rl_names_keep(&f->names, holder->str, holder->len);
    f->at[f->n++] = *x;
    return !f->names.lacking;
}

/* "a" and "{a}" share a token key, of which only "a" was read. */
static bool guess_in_braces(rl_found *f, rl_name lock)
{
    char twin[RLOCK_NAME_MAX];
    const char *name = rl_names_text(&f->names, lock.text);
    size_t len = rl_name_in_braces(name, lock.len, twin);
    return len == 0 || rl_names_add(&f->names, twin, len, true);
}

bool rl_found_note(rl_found *f, rl_name lock, const rl_reply *r)
{
    if (!is_sound(r))
        return false;
    int64_t clock_us = rl_item_number(&r->item[CLOCK]);
    rl_find x = {.name = lock.text,
                 .name_len = lock.len,
                 .count = rl_item_number(&r->item[COUNT]),
                 .ttl_ms = r->item[PTTL].integer,
                 .waiting = r->item[WAITING].integer,
                 .held_ms = -1,
                 .holders = 1};
    bool is_lock =
        note_side(&x, r) || note_permits(&x, r) || note_holder(&x, r, clock_us);
    if (x.kind != RLOCK_KIND_PERMIT)
        note_token(&x, r, clock_us);
    if (!x.held && r->item[TOKEN].len > 0 && !guess_in_braces(f, lock))
        return false;
    return !is_lock || !is_told(f, lock, &x) || keep(f, &x, &r->item[HOLDER]);
}

static bool names_a_hold(rlock_layout layout, const char *text, size_t len)
{
    rlock_holder h;
    char id[sizeof h.raw];
    if (len >= sizeof id)
        return false;
    memcpy(id, text, len);
    id[len] = '\0';
    return rl_read_holder_id(layout, id, &h);
}

/* Of others' strings none can be told from somebody's data. */
bool rl_found_is_string(const char *text, size_t len)
{
    return names_a_hold(RLOCK_LAYOUT_TIMESTAMP, text, len);
}

/* One of a read-write lock may be its mode, or a writer's. */
bool rl_found_is_hash(const char *field, size_t len)
{
    static const char mode[] = "mode", write[] = ":write";
    size_t behind = sizeof write - 1;
    if (len == sizeof mode - 1 && memcmp(field, mode, len) == 0)
        return true;
    if (len > behind && len < sizeof((rlock_holder *)0)->raw &&
        memcmp(field + len - behind, write, behind) == 0)
        len -= behind;
    return names_a_hold(RLOCK_LAYOUT_HASH, field, len);
}

/* --- telling -------------------------------------------------------------- */

/* A slot that moves may be at two servers; the one where it is held counts. */
static bool comes_first(const rl_find *x, const rl_find *y)
{
    return x->held > y->held || (x->held == y->held && x->token > y->token);
}

bool rl_found_sort(rl_found *f)
{
    rl_sorted *by_name = rl_sorted_new(&f->names, f->n);
    rl_find *all = calloc(f->n + 1, sizeof *all);
    size_t kept = 0;
    for (size_t i = 0; by_name && i < f->n; i++)
        by_name[i] = (rl_sorted){rl_names_text(&f->names, f->at[i].name),
                                 f->at[i].name_len, i};
    if (by_name)
        qsort(by_name, f->n, sizeof *by_name, rl_sorted_compare);
    for (size_t i = 0; by_name && all && i < f->n; i++) {
        const rl_find *x = &f->at[by_name[i].at];
        bool again =
            i > 0 && rl_sorted_compare(&by_name[i], &by_name[i - 1]) == 0;
        if (!again)
            all[kept++] = *x;
        else if (comes_first(x, &all[kept - 1]))
            all[kept - 1] = *x;
    }
    free(f->at);
    f->at = all;
    f->n = f->room = kept;
    free(by_name);
    return by_name && all;
}

void rl_found_tell(const rl_found *f, size_t i, rlock_lock_info *out,
                   rlock_holder *holder)
{
    const rl_find *x = &f->at[i];
    memset(holder, 0, sizeof *holder);
    *out = (rlock_lock_info){.name = rl_names_text(&f->names, x->name),
                             .name_len = x->name_len,
                             .kind = x->kind,
                             .layout = x->layout,
                             .waiting = x->waiting,
                             .ttl_ms = x->held ? x->ttl_ms : -2,
                             .token = x->token,
                             .held_ms = x->held_ms,
                             .available = x->available};
    if (!x->held)
        return;
    const char *raw = rl_names_text(&f->names, x->holder);
    size_t len = strlen(raw);
    memcpy(holder->raw, raw,
           len < sizeof holder->raw ? len : sizeof holder->raw - 1);
    rl_parse_holder(holder);
    holder->count = x->count;
    holder->ttl_ms = x->ttl_ms;
    out->holders = holder;
    out->n_holders = 1;
    out->holders_in_all = x->holders;
    out->foreign = !x->ours;
}
