/* What is in the server, in the words of a row: written there, and compared. */
#include <stdarg.h>

#include "table.h"

redisReply *say(table *t, const char *fmt, ...)
{
    static redisReply *last;
    va_list ap;
    if (last)
        freeReplyObject(last);
    va_start(ap, fmt);
    last = redisvCommand(t->cx, fmt, ap);
    va_end(ap);
    EXPECT(last);
    return last;
}

/* --- words ---------------------------------------------------------------- */

#define ID_A "host:7:8:6f1e1e0c-5d07-4f36-9a4e-f123456789ab"
#define ID_B "host:7:9:0a1e1e0c-5d07-4f36-9a4e-0123456789cd"
#define ID_X "other:1:2/label:7b1e1e0c-5d07-4f36-9a4e-fedcba987654"

static const struct {
    const char *word, *text;
} fixed[] = {
    {"A", ID_A},
    {"B", ID_B},
    {"X", ID_X},
    {"A1", ID_A ":1"},
    {"A2", ID_A ":2"},
    {"B1", ID_B ":1"},
    {"B2", ID_B ":2"},
    {"X1", ID_X ":1"},
    {"Aw", ID_A ":write"},
    {"Bw", ID_B ":write"},
    {"Xw", ID_X ":write"},
    {"F", "someone"},
    {"J", "6f1e1e0c-5d07-4f36-9a4e-f123456789ab:12"},
    {"G", "guarded"},
    {"-b1", "-rlock_bell:live1"},
    {"''", ""},
};

/* One letter, and perhaps a digit; the text has place for a name. */
static const struct {
    char letter;
    const char *text;
} by_name[] = {
    {'L', "%s"},
    {'T', "rlock_token:{%s}"},
    {'Q', "rlock_queue:{%s}"},
    {'W', "rlock_undone:{%s}:who"},
    {'U', "rlock_undone:{%s}:6f1e1e0c-5d07-4f36-9a4e-f123456789ab"},
    {'V', "rlock_undone:{%s}:0a1e1e0c-5d07-4f36-9a4e-0123456789cd"},
    {'R', "redisson_lock__channel:{%s}"},
    {'S', "rlock_line:{%s}"},
    {'I', "rlock_wants:{%s}"},
    {'E', "rlock_leases:{%s}"},
    {'M', "{%s}:" ID_A ":rwlock_timeout:1"},
    {'O', "{%s}:" ID_B ":rwlock_timeout:1"},
    {'C', "redisson_rwlock:{%s}"},
    {'P', "{%s}:timeout"},
    {'K', "redisson_sc:{%s}"},
};

#define COUNT(of) (sizeof(of) / sizeof *(of))

static char *room(void)
{
    static char rooms[20][600];
    static unsigned at;
    return rooms[at++ % 20];
}

static const char *bell_of(const char *word, char *out)
{
    static const char kinds[] = "bsd";
    static const char *const texts[] = {
        "rlock_bell:live%c", "rlock_sbell:live%c", "rlock_bell:dead%c"};
    const char *kind = *word ? strchr(kinds, *word) : NULL;
    if (!kind || strlen(word) != 2 || word[1] < '1' || word[1] > '9')
        return NULL;
    snprintf(out, 600, texts[kind - kinds], word[1]);
    return out;
}

const char *word_for(const char *word)
{
    char *out = room(), name[8] = "job";
    for (size_t i = 0; i < COUNT(fixed); i++)
        if (strcmp(word, fixed[i].word) == 0)
            return fixed[i].text;
    if (bell_of(word, out))
        return out;
    if (strlen(word) > 2 || (word[0] && word[1] && !strchr("23", word[1])))
        return word;
    snprintf(name, sizeof name, "job%s", word + (*word != '\0'));
    for (size_t i = 0; i < COUNT(by_name); i++)
        if (*word == by_name[i].letter) {
            snprintf(out, 600, by_name[i].text, name);
            return out;
        }
    return word;
}

/* NULL: it is no grant to one of the holders. */
static const char *grant_of(const char *text)
{
    char uuid[40], beat[24], token[24], claim[24], name[16], *out = room();
    static const char *const holders[] = {"A", "B", "X"};
    if (sscanf(text, "rlock_grant:%39s %23s %23s %23s %15s", uuid, beat, token,
               claim, name) != 5)
        return NULL;
    for (size_t i = 0; i < COUNT(holders); i++) {
        const char *id = word_for(holders[i]);
        if (strcmp(id + strlen(id) - strlen(uuid), uuid) != 0)
            continue;
        snprintf(out, 600, "grant:%s:%s:%s:%s:%s", holders[i], beat, token,
                 claim, word_of(name));
        return out;
    }
    return NULL;
}

const char *word_of(const char *text)
{
    const char *grant = grant_of(text);
    if (grant)
        return grant;
    static const char *const words[] = {
        "''", "A",  "B",  "X",  "F",  "J",  "b1", "b2", "b3", "s1", "d1", "d2",
        "G",  "L",  "T",  "Q",  "W",  "U",  "V",  "R",  "L2", "T2", "Q2", "U2",
        "R2", "L3", "T3", "Q3", "U3", "R3", "S",  "I",  "E",  "M",  "O",  "C",
        "Aw", "Bw", "Xw", "E2", "A1", "A2", "B1", "B2", "X1", "P",  "K",  "P2",
    };
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(word_for(words[i]), text) == 0)
            return words[i];
    return text;
}

static const char *token_of(table *t, const char *word)
{
    char *out = room(), key[4] = "T";
    if (sscanf(word, "token%1[23]", key + 1) < 1)
        key[1] = '\0';
    redisReply *r = say(t, "GET %s", word_for(key));
    snprintf(out, 600, "%s", r->str ? r->str : "nil");
    return out;
}

/* `now`, `now-500`: in us. */
static bool time_of(const table *t, const char *word, int64_t *us)
{
    if (strncmp(word, "now", 3) != 0)
        return false;
    *us = t->now_us + atoll(word + 3) * 1000;
    return true;
}

static bool is_number(const char *said, int64_t wanted)
{
    char *end;
    long long n = strtoll(said, &end, 10);
    return *said && !*end && n == wanted;
}

/* A time that is so far away: of a stamp, which is whole seconds, rounded up. */
static int64_t away_ms(const table *t, int64_t ms)
{
    int64_t now_ms = t->now_us / 1000;
    if (t->layout != RLOCK_LAYOUT_TIMESTAMP)
        return ms;
    return (now_ms + ms + 999) / 1000 * 1000 - now_ms;
}

/* A _ may stand for a blank. */
static bool is_phrase(const char *wanted, const char *said)
{
    for (; *wanted && *said; wanted++, said++)
        if (*wanted != *said && !(*wanted == '_' && *said == ' '))
            return false;
    return !*wanted && !*said;
}

bool word_is(table *t, const char *wanted, const char *said)
{
    int64_t us;
    if (strcmp(wanted, "*") == 0)
        return true;
    if (strcmp(wanted, "run") == 0)
        return strlen(said) == 40;
    if (strcmp(wanted, "some") == 0)
        return atoll(said) > 0;
    if (strcmp(wanted, "value") == 0) {
        redisReply *r = say(t, "GET %s", word_for("L"));
        return r->str && strcmp(r->str, said) == 0;
    }
    if (*wanted == '~')
        return is_number(said, away_ms(t, atoll(wanted + 1)));
    if (time_of(t, wanted, &us))
        return is_number(said, us);
    if (strncmp(wanted, "token", 5) == 0)
        return strcmp(token_of(t, wanted), said) == 0;
    return is_phrase(wanted, word_of(said));
}

/* --- items ---------------------------------------------------------------- */

typedef struct item {
    char key[8], value[100];
    int64_t ttl_ms;
    bool has_ttl, is_bare;
} item;

/* The next item of the state; false: there is none. */
static bool next_item(const char **at, item *x)
{
    char ttl[32] = "";
    int len = 0;
    memset(x, 0, sizeof *x);
    *at += strspn(*at, " ");
    if (!**at)
        return false;
    if (sscanf(*at, "%7[^= ]=%99[^@ ]%n", x->key, x->value, &len) < 2)
        if (sscanf(*at, "%7[^= ]=%n", x->key, &len) < 1 || len == 0)
            FAIL("no item: %s", *at);
    *at += len;
    if (**at == '@') {
        x->has_ttl = sscanf(*at, "@%31[^ ]%n", ttl, &len) == 1;
        x->ttl_ms = atoll(ttl);
        x->is_bare = strchr(ttl, '/') != NULL;
        *at += len;
    }
    return true;
}

/* Some fields: of a read-write lock, or what is wanted by those in line. */
static bool has_fields(const item *x)
{
    return *x->key == 'I' || (*x->key == 'L' && *x->value != '?' &&
                              (strncmp(x->value, "read", 4) == 0 ||
                               strncmp(x->value, "write", 5) == 0));
}

/* Some words with a number each. */
static bool is_sorted(const item *x)
{
    return strchr("QSEP", *x->key) != NULL;
}

/* In the words of the layout. */
static bool is_lock(const item *x)
{
    return *x->key == 'L' && *x->value != '?';
}

/* A ticket as it is, a time in us; of leases so many ms from now on. */
static void score_of(const table *t, const item *x, const char *word, char *out,
                     size_t size)
{
    int64_t us;
    if (*x->key == 'E' || *x->key == 'P')
        snprintf(out, size, "%lld", (long long)t->now_us / 1000 + atoll(word));
    else if (time_of(t, word, &us))
        snprintf(out, size, "%lld", (long long)us);
    else
        snprintf(out, size, "%s", word);
}

/* "read": the mode. "A:1": a level. "b1:6000:7": a client's sign of life, with its
   beat. "A:60000:r:b1": what A wants. */
typedef struct field {
    char name[200], value[200];
} field;

static field field_of(const table *t, const char *text)
{
    field f;
    char w[4][48] = {""};
    int n =
        sscanf(text, "%47[^:]:%47[^:]:%47[^:]:%47s", w[0], w[1], w[2], w[3]);
    snprintf(f.name, sizeof f.name, "%s%s", n == 3 ? "=" : "",
             n == 1 ? "mode" : word_for(w[0]));
    if (n == 4)
        snprintf(f.value, sizeof f.value, "%s %s %s", w[1], w[2],
                 word_for(w[3]));
    else if (n == 3)
        snprintf(f.value, sizeof f.value, "%lld %s",
                 (long long)t->now_us / 1000 + atoll(w[1]), w[2]);
    else
        snprintf(f.value, sizeof f.value, "%s", w[n - 1]);
    return f;
}

/* "A*2": the holder id, and its count. */
static const char *holder_in(const item *x, char *count, size_t size)
{
    char word[8] = "";
    *count = '\0';
    sscanf(x->value, "%7[^*]*%7s", word, count);
    if (!*count)
        snprintf(count, size, "1");
    return word_for(word);
}

/* Ours has 48 bits of the uuid behind ".0"; of others it is whole seconds. */
static void write_stamp(const char *holder, long long seconds, char *out,
                        size_t size)
{
    size_t len = strlen(holder);
    if (len < 36)
        snprintf(out, size, "%lld", seconds);
    else
        snprintf(out, size, "%lld.0%015lld", seconds,
                 strtoll(holder + len - 12, NULL, 16));
}

/* --- put there ------------------------------------------------------------ */

static void put_ttl(table *t, const item *x)
{
    if (x->has_ttl)
        EXPECT_INT(
            say(t, "PEXPIRE %s %lld", word_for(x->key), (long long)x->ttl_ms)
                ->integer,
            1);
}

static void put_stamp(table *t, const item *x, const char *holder)
{
    char value[64];
    long long left_ms = away_ms(t, x->ttl_ms);
    write_stamp(holder, (t->now_us / 1000 + left_ms) / 1000, value,
                sizeof value);
    say(t, "SET %s %s", word_for(x->key), value);
    if (!x->is_bare)
        say(t, "PEXPIRE %s %lld", word_for(x->key), left_ms + 60000);
}

static void put_lock(table *t, const item *x)
{
    char count[8];
    const char *holder = holder_in(x, count, sizeof count);
    if (t->layout == RLOCK_LAYOUT_TIMESTAMP) {
        put_stamp(t, x, holder);
        return;
    }
    if (t->layout == RLOCK_LAYOUT_HASH)
        say(t, "HSET %s %s %s", word_for(x->key), holder, count);
    else
        say(t, "SET %s %s", word_for(x->key), holder);
    put_ttl(t, x);
}

static void put_queue(table *t, const item *x)
{
    char copy[100], *rest = copy, bell[8], ticket[32], score[32];
    snprintf(copy, sizeof copy, "%s", x->value);
    for (char *w; (w = strtok_r(rest, ",", &rest)) != NULL;) {
        EXPECT_INT(sscanf(w, "%7[^:]:%31s", bell, ticket), 2);
        score_of(t, x, ticket, score, sizeof score);
        say(t, "ZADD %s %s %s", word_for(x->key), score, word_for(bell));
    }
    put_ttl(t, x);
}

static void put_fields(table *t, const item *x)
{
    char copy[100], *rest = copy;
    snprintf(copy, sizeof copy, "%s", x->value);
    for (char *w; (w = strtok_r(rest, ",", &rest)) != NULL;) {
        field f = field_of(t, w);
        say(t, "HSET %s %s %s", word_for(x->key), f.name, f.value);
    }
    put_ttl(t, x);
}

static void put_waiter(table *t, const item *x)
{
    char bell[8], ticket[32], holder[8], want[2][24] = {"", ""}, value[200];
    int words = sscanf(x->value, "%7[^:]:%31[^:]:%7[^:]:%23[^:]:%23s", bell,
                       ticket, holder, want[0], want[1]);
    EXPECT(words == 3 || words == 5);
    snprintf(value, sizeof value, words == 5 ? "%s %s %s %s" : "%s %s", ticket,
             word_for(holder), want[0], want[1]);
    say(t, "HSET %s %s %s", word_for(x->key), word_for(bell), value);
    put_ttl(t, x);
}

/* Of a lock behind a ?, if there is something. */
static const char *text_in(const item *x)
{
    return x->value + (x->value[0] == '?' && x->value[1]);
}

static void put_text(table *t, const item *x)
{
    int64_t us;
    if (time_of(t, x->value, &us))
        say(t, "SET %s %lld", word_for(x->key), (long long)us);
    else
        say(t, "SET %s %s", word_for(x->key), text_in(x));
    put_ttl(t, x);
}

static void put_item(table *t, const item *x)
{
    if (strcmp(x->value, "!") == 0) {
        say(t, "SADD %s x", word_for(x->key));
    } else if (has_fields(x)) {
        put_fields(t, x);
    } else if (is_lock(x)) {
        put_lock(t, x);
    } else if (is_sorted(x)) {
        put_queue(t, x);
    } else if (*x->key == 'W') {
        put_waiter(t, x);
    } else {
        put_text(t, x);
    }
}

static void look_at_clock(table *t)
{
    redisReply *r = say(t, "TIME");
    t->now_us = atoll(r->element[0]->str) * 1000000 + atoll(r->element[1]->str);
}

void state_put(table *t, const char *state)
{
    item x;
    look_at_clock(t);
    while (next_item(&state, &x))
        put_item(t, &x);
}

/* --- compared ------------------------------------------------------------- */

static char difference[2000];

__attribute__((format(printf, 1, 2))) static void differs(const char *fmt, ...)
{
    size_t used = strlen(difference);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(difference + used, sizeof difference - used, fmt, ap);
    va_end(ap);
}

static void expect_word(table *t, const item *x, const char *wanted,
                        const char *said)
{
    if (!word_is(t, wanted, said))
        differs("%s has %s, not %s; ", x->key, word_of(said), wanted);
}

static void expect_ttl(table *t, const item *x, int64_t ttl_ms, bool has)
{
    long long is = say(t, "PTTL %s", word_for(x->key))->integer;
    if (is != (has ? ttl_ms : -1))
        differs("%s lives for %lld ms; ", x->key, is);
}

static void expect_stamp(table *t, const item *x, const char *holder)
{
    char ours[64];
    int64_t left_ms = away_ms(t, x->ttl_ms);
    write_stamp(holder, (t->now_us / 1000 + left_ms) / 1000, ours, sizeof ours);
    redisReply *r = say(t, "GET %s", word_for(x->key));
    if (r->type != REDIS_REPLY_STRING || strcmp(r->str, ours) != 0)
        differs("%s is %s, and now is %lld; ", x->key, r->str ? r->str : "nil",
                (long long)(t->now_us / 1000000));
    expect_ttl(t, x, left_ms + 60000, !x->is_bare);
}

static void expect_lock(table *t, const item *x)
{
    char count[8];
    const char *holder = holder_in(x, count, sizeof count);
    if (t->layout == RLOCK_LAYOUT_TIMESTAMP) {
        expect_stamp(t, x, holder);
        return;
    }
    if (t->layout == RLOCK_LAYOUT_HASH) {
        redisReply *r = say(t, "HGETALL %s", word_for(x->key));
        bool is_one = r->type == REDIS_REPLY_ARRAY && r->elements == 2;
        if (!is_one || strcmp(r->element[0]->str, holder) != 0 ||
            strcmp(r->element[1]->str, count) != 0)
            differs("%s is %s*%s; ", x->key,
                    is_one ? word_of(r->element[0]->str) : "no lock",
                    is_one ? r->element[1]->str : "");
    } else {
        redisReply *r = say(t, "GET %s", word_for(x->key));
        if (!r->str || strcmp(r->str, holder) != 0)
            differs("%s is %s; ", x->key, r->str ? word_of(r->str) : "no lock");
    }
    expect_ttl(t, x, x->ttl_ms, x->has_ttl);
}

/* "b1:100,b2:200" */
static void expect_queue(table *t, const item *x)
{
    char copy[100], *rest = copy, bell[8], ticket[32], score[32];
    int n = 0;
    redisReply *r;
    snprintf(copy, sizeof copy, "%s", x->value);
    for (char *w; (w = strtok_r(rest, ",", &rest)) != NULL; n++) {
        EXPECT_INT(sscanf(w, "%7[^:]:%31s", bell, ticket), 2);
        r = say(t, "ZRANGE %s %d %d WITHSCORES", word_for(x->key), n, n);
        if (r->type != REDIS_REPLY_ARRAY || r->elements != 2) {
            differs("%s has not %s; ", x->key, w);
            continue;
        }
        expect_word(t, x, bell, r->element[0]->str);
        score_of(t, x, ticket, score, sizeof score);
        expect_word(t, x, score, r->element[1]->str);
    }
    r = say(t, "ZCARD %s", word_for(x->key));
    if (r->integer != n)
        differs("%s has %lld bells; ", x->key, r->integer);
    expect_ttl(t, x, x->ttl_ms, x->has_ttl);
}

static void expect_fields(table *t, const item *x)
{
    char copy[100], *rest = copy;
    int n = 0;
    snprintf(copy, sizeof copy, "%s", x->value);
    for (char *w; (w = strtok_r(rest, ",", &rest)) != NULL; n++) {
        field f = field_of(t, w);
        redisReply *r = say(t, "HGET %s %s", word_for(x->key), f.name);
        if (!r->str || strcmp(r->str, f.value) != 0)
            differs("%s has %s, not %s; ", x->key, r->str ? r->str : "nothing",
                    w);
    }
    redisReply *r = say(t, "HLEN %s", word_for(x->key));
    if (r->integer != n)
        differs("%s has %lld fields; ", x->key, r->integer);
    expect_ttl(t, x, x->ttl_ms, x->has_ttl);
}

static void expect_waiter(table *t, const item *x)
{
    char bell[8], wanted[4][32] = {"", "", "", ""}, said[4][100] = {""};
    sscanf(x->value, "%7[^:]:%31[^:]:%31[^:]:%31[^:]:%31s", bell, wanted[0],
           wanted[1], wanted[2], wanted[3]);
    redisReply *r = say(t, "HGET %s %s", word_for(x->key), word_for(bell));
    if (r->str)
        sscanf(r->str, "%99s %99s %99s %99s", said[0], said[1], said[2],
               said[3]);
    for (int i = 0; i < 4 && *wanted[i]; i++)
        expect_word(t, x, wanted[i], said[i]);
    expect_ttl(t, x, x->ttl_ms, x->has_ttl);
}

static void expect_item(table *t, const item *x)
{
    if (strcmp(x->value, "!") == 0) {
        redisReply *r = say(t, "SMEMBERS %s", word_for(x->key));
        if (r->type != REDIS_REPLY_ARRAY || r->elements != 1)
            differs("%s is not what it was; ", x->key);
    } else if (has_fields(x)) {
        expect_fields(t, x);
    } else if (is_lock(x)) {
        expect_lock(t, x);
    } else if (is_sorted(x)) {
        expect_queue(t, x);
    } else if (*x->key == 'W') {
        expect_waiter(t, x);
    } else {
        redisReply *r = say(t, "GET %s", word_for(x->key));
        char value[600];
        snprintf(value, sizeof value, "%s", r->str ? r->str : "nil");
        expect_word(t, x, *x->value ? text_in(x) : "''", value);
        expect_ttl(t, x, x->ttl_ms, x->has_ttl);
    }
}

const char *state_differs(table *t, const char *state)
{
    item x;
    size_t n = 0;
    const char *at = state;
    difference[0] = '\0';
    look_at_clock(t);
    for (; next_item(&at, &x); n++)
        expect_item(t, &x);
    redisReply *r = say(t, "KEYS *");
    if (r->elements == n)
        return difference;
    differs("there are");
    for (size_t i = 0; i < r->elements; i++)
        differs(" %s", word_of(r->element[i]->str));
    return difference;
}
