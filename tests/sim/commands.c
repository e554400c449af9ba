/*
 * The commands, each as Redis 7 documents and words it: arguments are checked,
 * then the key's type, then something is changed. They answer in RESP.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

static void drop_if_empty(store *s, entry *e)
{
    if (e->count == 0)
        store_remove(s, e);
}

/* --- hashes --------------------------------------------------------------- */

static void put(item *x, const word *value)
{
    x->value.len = 0;
    text_add(&x->value, value->at, value->len);
}

/* Sets a field. True: it is new. */
static bool put_field(entry *e, const word *name, const word *value)
{
    item *x = entry_find(e, name);
    bool is_new = !x;
    put(x ? x : entry_add(e, name, 0), value);
    return is_new;
}

static void hset(call *c)
{
    entry *e;
    long long added = 0;
    if (c->n % 2 != 0) {
        say(c, "-ERR wrong number of arguments for 'hset' command");
        return;
    }
    if (!find(c, KIND_HASH, &e))
        return;
    if (!e)
        e = store_add(c->s, &c->argv[1], KIND_HASH);
    for (size_t i = 2; i < c->n; i += 2)
        added += put_field(e, &c->argv[i], &c->argv[i + 1]);
    text_number(c->out, added);
}

static void hincrby(call *c)
{
    entry *e;
    long long by, old = 0;
    if (!word_number(&c->argv[3], &by)) {
        not_an_integer(c);
        return;
    }
    if (!find(c, KIND_HASH, &e))
        return;
    item *x = e ? entry_find(e, &c->argv[2]) : NULL;
    if (x && !text_is_number(&x->value, &old)) {
        say(c, "-ERR hash value is not an integer");
        return;
    }
    char digits[24];
    word sum = {digits,
                (size_t)snprintf(digits, sizeof digits, "%lld", old + by)};
    if (!e)
        e = store_add(c->s, &c->argv[1], KIND_HASH);
    put_field(e, &c->argv[2], &sum);
    text_number(c->out, old + by);
}

static void hdel(call *c)
{
    entry *e;
    long long found = 0;
    if (!find(c, KIND_HASH, &e))
        return;
    for (size_t i = 2; e && i < c->n; i++) {
        item *x = entry_find(e, &c->argv[i]);
        if (x)
            entry_drop(e, (size_t)(x - e->items));
        found += x != NULL;
    }
    if (e)
        drop_if_empty(c->s, e);
    text_number(c->out, found);
}

static void hget(call *c)
{
    entry *e;
    if (!find(c, KIND_HASH, &e))
        return;
    const item *x = e ? entry_find(e, &c->argv[2]) : NULL;
    if (x)
        add_text(c, &x->value);
    else
        say(c, "$-1");
}

static void hkeys(call *c)
{
    entry *e;
    if (!find(c, KIND_HASH, &e))
        return;
    text_print(c->out, "*%zu\r\n", e ? e->count : 0);
    for (size_t i = 0; e && i < e->count; i++)
        add_text(c, &e->items[i].name);
}

static void hexists(call *c)
{
    entry *e;
    if (find(c, KIND_HASH, &e))
        text_number(c->out, e && entry_find(e, &c->argv[2]));
}

static void hlen(call *c)
{
    entry *e;
    if (find(c, KIND_HASH, &e))
        text_number(c->out, e ? (long long)e->count : 0);
}

/* Which of several is not known of a real one. */
static void hrandfield(call *c)
{
    entry *e;
    if (!find(c, KIND_HASH, &e))
        return;
    if (e)
        add_text(c, &e->items[0].name);
    else
        say(c, "$-1");
}

static void add_items(call *c, const entry *e)
{
    size_t n = e ? e->count : 0;
    text_print(c->out, "*%zu\r\n", n * 2);
    for (size_t i = 0; i < n; i++) {
        add_text(c, &e->items[i].name);
        add_text(c, &e->items[i].value);
    }
}

static void hgetall(call *c)
{
    entry *e;
    if (find(c, KIND_HASH, &e))
        add_items(c, e);
}

/* A small hash comes as a whole. */
static void hscan(call *c)
{
    entry *e;
    if (!find(c, KIND_HASH, &e))
        return;
    text_print(c->out, "*2\r\n$1\r\n0\r\n");
    add_items(c, e);
}

/* --- sorted sets ---------------------------------------------------------- */

static void add_score(call *c, double score)
{
    char digits[32];
    text_bulk(c->out, digits,
              (size_t)snprintf(digits, sizeof digits, "%.17g", score));
}

static bool read_score(const word *w, double *score)
{
    char digits[64], *end;
    if (w->len == 0 || w->len >= sizeof digits)
        return false;
    memcpy(digits, w->at, w->len);
    digits[w->len] = '\0';
    *score = strtod(digits, &end);
    return !*end && !isnan(*score);
}

static void move(entry *e, item *x, double score)
{
    if (x->score == score)
        return;
    text name = x->name;
    x->name = (text){0};
    entry_drop(e, (size_t)(x - e->items));
    word w = {name.at, name.len};
    entry_add(e, &w, score);
    text_free(&name);
}

typedef struct zadd_flags {
    bool nx, xx, gt, ch;
} zadd_flags;

/* Where the scores begin. */
static size_t read_zadd_flags(const call *c, zadd_flags *f)
{
    size_t i = 2;
    *f = (zadd_flags){0};
    for (; i < c->n; i++) {
        const word *w = &c->argv[i];
        bool *flag = word_is(w, "NX")   ? &f->nx
                     : word_is(w, "XX") ? &f->xx
                     : word_is(w, "GT") ? &f->gt
                     : word_is(w, "CH") ? &f->ch
                                        : NULL;
        if (!flag)
            break;
        *flag = true;
    }
    return i;
}

/* A member of it. True: it counts. */
static bool put_member(entry *e, const word *name, double score,
                       const zadd_flags *f)
{
    item *x = entry_find(e, name);
    if (!x && !f->xx)
        entry_add(e, name, score);
    if (!x)
        return !f->xx;
    if (f->nx || (f->gt && score <= x->score))
        return false;
    bool changes = x->score != score;
    move(e, x, score);
    return f->ch && changes;
}

static void zadd(call *c)
{
    entry *e;
    double score;
    zadd_flags f;
    long long counted = 0;
    size_t first = read_zadd_flags(c, &f);
    if (first == c->n || (c->n - first) % 2 != 0) {
        syntax_error(c);
        return;
    }
    for (size_t i = first; i < c->n; i += 2)
        if (!read_score(&c->argv[i], &score)) {
            say(c, "-ERR value is not a valid float");
            return;
        }
    if (!find(c, KIND_ZSET, &e))
        return;
    if (!e && !f.xx)
        e = store_add(c->s, &c->argv[1], KIND_ZSET);
    for (size_t i = first; e && i < c->n; i += 2)
        if (read_score(&c->argv[i], &score))
            counted += put_member(e, &c->argv[i + 1], score, &f);
    text_number(c->out, counted);
}

static void zrem(call *c)
{
    entry *e;
    long long found = 0;
    if (!find(c, KIND_ZSET, &e))
        return;
    for (size_t i = 2; e && i < c->n; i++) {
        item *x = entry_find(e, &c->argv[i]);
        if (x)
            entry_drop(e, (size_t)(x - e->items));
        found += x != NULL;
    }
    if (e)
        drop_if_empty(c->s, e);
    text_number(c->out, found);
}

/* How many have no larger score, or with "(" before it, a smaller one; from -inf
   on. False: an error has been said. */
static bool count_up_to(call *c, const entry *e, size_t *n)
{
    word most = c->argv[3];
    bool below = most.len > 0 && *most.at == '(';
    double score;
    most.at += below;
    most.len -= below;
    *n = 0;
    if (!word_is(&c->argv[2], "-inf") || !read_score(&most, &score)) {
        say(c, "-ERR min or max is not a float");
        return false;
    }
    while (
        e && *n < e->count &&
        (e->items[*n].score < score || (!below && e->items[*n].score <= score)))
        ++*n;
    return true;
}

static void zcount(call *c)
{
    entry *e;
    size_t n;
    if (find(c, KIND_ZSET, &e) && count_up_to(c, e, &n))
        text_number(c->out, (long long)n);
}

/* ... [LIMIT 0 count] */
static void zrangebyscore(call *c)
{
    entry *e;
    size_t n;
    long long limit = LLONG_MAX;
    if (!find(c, KIND_ZSET, &e) || !count_up_to(c, e, &n))
        return;
    if (c->n > 4 &&
        (c->n != 7 || !word_is(&c->argv[4], "LIMIT") ||
         !word_is(&c->argv[5], "0") || !word_number(&c->argv[6], &limit))) {
        syntax_error(c);
        return;
    }
    n = n < (size_t)limit ? n : (size_t)limit;
    text_print(c->out, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++)
        add_text(c, &e->items[i].name);
}

static void zrank(call *c)
{
    entry *e;
    if (!find(c, KIND_ZSET, &e))
        return;
    const item *x = e ? entry_find(e, &c->argv[2]) : NULL;
    if (x)
        text_number(c->out, x - e->items);
    else
        say(c, "$-1");
}

static void zcard(call *c)
{
    entry *e;
    if (find(c, KIND_ZSET, &e))
        text_number(c->out, e ? (long long)e->count : 0);
}

static void zpopmin(call *c)
{
    entry *e;
    if (!find(c, KIND_ZSET, &e))
        return;
    if (!e) {
        say(c, "*0");
        return;
    }
    say(c, "*2");
    add_text(c, &e->items[0].name);
    add_score(c, e->items[0].score);
    entry_drop(e, 0);
    drop_if_empty(c->s, e);
}

/* Counted from the end if it is below 0. */
static long long index_of(long long i, long long count)
{
    return i < 0 ? i + count : i;
}

/* ... first last [WITHSCORES]; down: the highest is the first */
static void tell_range(call *c, bool down)
{
    entry *e;
    long long first, last;
    if (!word_number(&c->argv[2], &first) || !word_number(&c->argv[3], &last)) {
        not_an_integer(c);
        return;
    }
    if (!find(c, KIND_ZSET, &e))
        return;
    long long count = e ? (long long)e->count : 0;
    first = index_of(first, count);
    last = index_of(last, count);
    first = first < 0 ? 0 : first;
    last = last < count ? last : count - 1;
    long long n = last < first ? 0 : last - first + 1;
    text_print(c->out, "*%lld\r\n", c->n == 5 ? n * 2 : n);
    for (; n > 0; n--, first++) {
        const item *x = &e->items[down ? count - 1 - first : first];
        add_text(c, &x->name);
        if (c->n == 5)
            add_score(c, x->score);
    }
}

static void zrange(call *c)
{
    tell_range(c, false);
}

static void zrevrange(call *c)
{
    tell_range(c, true);
}

static void say_score(call *c, entry *e, const word *name)
{
    const item *x = e ? entry_find(e, name) : NULL;
    if (x)
        add_score(c, x->score);
    else
        say(c, "$-1");
}

static void zscore(call *c)
{
    entry *e;
    if (find(c, KIND_ZSET, &e))
        say_score(c, e, &c->argv[2]);
}

static void zmscore(call *c)
{
    entry *e;
    if (!find(c, KIND_ZSET, &e))
        return;
    text_print(c->out, "*%zu\r\n", c->n - 2);
    for (size_t i = 2; i < c->n; i++)
        say_score(c, e, &c->argv[i]);
}

/* --- the server ----------------------------------------------------------- */

static void publish(call *c)
{
    store *s = c->s;
    bool is_sharded = word_is(&c->argv[0], "SPUBLISH");
    text_number(c->out,
                s->publish(s->arg, is_sharded, &c->argv[1], &c->argv[2]));
}

static void tell_time(call *c)
{
    say(c, "*2");
    text_bulk_number(c->out, c->s->now_us / 1000000);
    text_bulk_number(c->out, c->s->now_us % 1000000);
}

static void info(call *c)
{
    char all[256];
    long long uptime = c->s->now_us / 1000000 - c->s->started_us / 1000000;
    int n = snprintf(all, sizeof all,
                     "# Server\r\nredis_version:7.0.15\r\n"
                     "redis_mode:standalone\r\nrun_id:%s\r\n"
                     "uptime_in_seconds:%lld\r\n# Memory\r\nmaxmemory:0\r\n"
                     "maxmemory_policy:noeviction\r\n",
                     c->s->run_id, uptime);
    text_bulk(c->out, all, (size_t)n);
}

static void ping(call *c)
{
    say(c, "+PONG");
}

/* --- the table ------------------------------------------------------------ */

#define READS  0
#define WRITES 1
#define GROWS  3 /* writes, and is refused where there is no memory */

static const struct command {
    const char *name;
    size_t least, most; /* words; most 0: any number */
    int flags;
    void (*run)(call *c);
} commands[] = {
    {"exists", 2, 0, READS, command_exists},
    {"set", 3, 0, GROWS, command_set},
    {"get", 2, 2, READS, command_get},
    {"time", 1, 1, READS, tell_time},
    {"pexpire", 3, 4, WRITES, command_pexpire},
    {"pttl", 2, 2, READS, command_pttl},
    {"hset", 4, 0, GROWS, hset},
    {"hget", 3, 3, READS, hget},
    {"hexists", 3, 3, READS, hexists},
    {"hdel", 3, 0, WRITES, hdel},
    {"zpopmin", 2, 2, WRITES, zpopmin},
    {"publish", 3, 3, READS, publish},
    {"spublish", 3, 3, READS, publish},
    {"zadd", 4, 0, GROWS, zadd},
    {"zrem", 3, 0, WRITES, zrem},
    {"hkeys", 2, 2, READS, hkeys},
    {"zrank", 3, 3, READS, zrank},
    {"zcard", 2, 2, READS, zcard},
    {"getrange", 4, 4, READS, command_getrange},
    {"del", 2, 0, WRITES, command_del},
    {"hlen", 2, 2, READS, hlen},
    {"hscan", 3, 0, READS, hscan},
    {"hrandfield", 2, 2, READS, hrandfield},
    {"hincrby", 4, 4, GROWS, hincrby},
    {"hgetall", 2, 2, READS, hgetall},
    {"zrange", 4, 5, READS, zrange},
    {"zrevrange", 4, 5, READS, zrevrange},
    {"zscore", 3, 3, READS, zscore},
    {"zmscore", 3, 0, READS, zmscore},
    {"zcount", 4, 4, READS, zcount},
    {"zrangebyscore", 4, 7, READS, zrangebyscore},
    {"type", 2, 2, READS, command_type},
    {"info", 1, 2, READS, info},
    {"ping", 1, 1, READS, ping},
    {"flushall", 1, 1, WRITES, command_flushall},
    {"incrby", 3, 3, GROWS, command_incrby},
    {"decrby", 3, 3, GROWS, command_decrby},
};

static const struct command *command_of(const word *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (word_is(name, commands[i].name))
            return &commands[i];
    return NULL;
}

void store_command(store *s, const word *argv, size_t n, text *out)
{
    call c = {s, argv, n, out};
    const struct command *command = command_of(&argv[0]);
    if (!command) {
        text_print(out, "-ERR unknown command '%.*s'\r\n", (int)argv[0].len,
                   argv[0].at);
    } else if (n < command->least || (command->most && n > command->most)) {
        text_print(out, "-ERR wrong number of arguments for '%s' command\r\n",
                   command->name);
    } else if (command->flags == GROWS && s->lacks_memory && !s->wrote) {
        say(&c, "-OOM command not allowed when used memory > 'maxmemory'.");
    } else if (command->flags != READS && s->is_replica) {
        say(&c, "-READONLY You can't write against a read only replica.");
    } else {
        s->wrote = s->in_script && (s->wrote || command->flags != READS);
        s->changes += command->flags != READS;
        command->run(&c);
    }
}
