#include "answer.h"

#include <stdarg.h>

#include "resp.h"
#include "wire/script.h"

/* --- requests ------------------------------------------------------------ */

static ask ask_of_script(size_t id)
{
    if (id == RL_SCRIPT_PROBE)
        return ASK_PROBE;
    if (id == RL_SCRIPT_IDENTIFY)
        return ASK_IDENTIFY;
    if (id == RL_SCRIPT_HASH_HANDOVER)
        return ASK_HAND_OVER;
    for (size_t i = 0; i <= 2; i++) {
        if (id == rl_layouts[i].acquire)
            return ASK_ACQUIRE;
        if (id == rl_layouts[i].inspect)
            return ASK_INSPECT;
        if (id == rl_layouts[i].take_many)
            return ASK_TAKE_MANY;
        if (id == rl_layouts[i].renew_many || id == rl_layouts[i].free_many)
            return ASK_OF_MANY;
    }
    return ASK_COUNT;
}

/* By its digest, or whole. */
static ask ask_of_eval(const request *r)
{
    const char *word;
    size_t len;
    if (!resp_word(r->at, r->len, 1, &word, &len))
        return ASK_OTHER;
    for (size_t i = 0; i < RL_SCRIPT_COUNT; i++) {
        const rl_script *s = &rl_scripts[i];
        if ((len == 40 && memcmp(word, s->sha1, len) == 0) ||
            (len == s->len && memcmp(word, s->body, len) == 0))
            return ask_of_script(i);
    }
    return ASK_EVAL;
}

ask request_asks(const request *r)
{
    if (resp_word_is(r->at, r->len, 0, "EVALSHA") ||
        resp_word_is(r->at, r->len, 0, "EVAL"))
        return ask_of_eval(r);
    if (resp_word_is(r->at, r->len, 0, "PING"))
        return ASK_PING;
    if (resp_word_is(r->at, r->len, 0, "SUBSCRIBE"))
        return ASK_SUBSCRIBE;
    if (resp_word_is(r->at, r->len, 0, "UNSUBSCRIBE"))
        return ASK_UNSUBSCRIBE;
    return ASK_OTHER;
}

bool request_is_greeting(const request *r)
{
    return r->what == ASK_IDENTIFY || r->what == ASK_PROBE ||
           r->what >= ASK_EVAL;
}

/* --- answers ------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void put(bytes *b, const char *fmt,
                                                      ...)
{
    size_t room = sizeof b->at - b->len;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(b->at + b->len, room, fmt, ap);
    va_end(ap);
    b->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static void put_string(bytes *b, const void *text, size_t len)
{
    put(b, "$%zu\r\n", len);
    if (len + 2 > sizeof b->at - b->len)
        return;
    memcpy(b->at + b->len, text, len);
    b->len += len;
    put(b, "\r\n");
}

static void put_text(bytes *b, const char *text)
{
    put_string(b, text, strlen(text));
}

static void put_number(bytes *b, int64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)n);
    put_text(b, text);
}

static void put_word(bytes *b, const request *r, int i)
{
    const char *word;
    size_t len;
    if (resp_word(r->at, r->len, i, &word, &len))
        put_string(b, word, len);
    else
        put(b, "$-1\r\n");
}

/* Each server of a Red lock has to be another one. */
static void put_run(bytes *b, const request *r)
{
    put(b, "$40\r\n%040u\r\n$2\r\n90\r\n", r->door);
}

static void put_pong(bytes *b, const request *r)
{
    if (r->subscribed)
        put(b, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    else if (resp_words(r->at, r->len) > 1)
        put_word(b, r, 1);
    else
        put(b, "+PONG\r\n");
}

static void put_subscribed(bytes *b, const request *r)
{
    put(b, "*3\r\n");
    put_text(b, r->what == ASK_SUBSCRIBE ? "subscribe" : "unsubscribe");
    put_word(b, r, 1);
    put(b, ":%d\r\n", r->what == ASK_SUBSCRIBE);
}

/* A number among its words; 0: it is none. */
static int word_as_number(const request *r, int i)
{
    const char *word;
    size_t len;
    char text[16] = "";
    if (resp_word(r->at, r->len, i, &word, &len) && len < sizeof text)
        memcpy(text, word, len);
    return atoi(text);
}

#define KEYS_WORD  2
#define FIRST_KEY  3
#define LEAST_ARG  6 /* of an acquire */
#define KEPT_ARG   7 /* of a hand-over */
#define TAKEN_KEYS 3 /* for each lock of take_many */
#define MOST_LOCKS 64

/* Of a call about many, whose ARGV are a lease, perhaps, and one or two for
   each lock. */
static unsigned locks_of(const request *r)
{
    int keys = word_as_number(r, KEYS_WORD);
    int args = resp_words(r->at, r->len) - FIRST_KEY - keys;
    int n = r->what == ASK_TAKE_MANY ? keys / TAKEN_KEYS
            : args == keys           ? keys / 2
                                     : keys;
    return n < 1 ? 1 : n > MOST_LOCKS ? MOST_LOCKS : (unsigned)n;
}

static void put_grant(bytes *b, const request *r, uint64_t *token)
{
    int keys = word_as_number(r, KEYS_WORD);
    bool says_least = resp_words(r->at, r->len) >= FIRST_KEY + keys + LEAST_ARG;
    if (says_least)
        put(b, "*3\r\n:1\r\n");
    put_number(b, (int64_t)++ * token);
    if (says_least)
        put_number(b, (int64_t)*token);
}

/* With tokens to keep, if some are wanted. */
static void put_handed(bytes *b, const request *r, uint64_t *token)
{
    int keys = word_as_number(r, KEYS_WORD);
    int kept = word_as_number(r, FIRST_KEY + keys + KEPT_ARG - 1);
    if (kept > 0)
        put(b, "*2\r\n:3\r\n");
    put_number(b, (int64_t)++ * token);
    *token += (uint64_t)(kept > 0 ? kept : 0);
}

static void put_grants(bytes *b, const request *r, uint64_t *token)
{
    char text[MOST_LOCKS * 24] = "";
    size_t len = 0;
    for (unsigned i = locks_of(r); i > 0; i--)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%llu",
                                len ? " " : "", (unsigned long long)++*token);
    put_text(b, text);
}

static void put_letters(bytes *b, const request *r, char letter)
{
    char text[MOST_LOCKS];
    memset(text, letter, sizeof text);
    put_string(b, text, locks_of(r));
}

/* False: it is no request for a lock. */
static bool put_lock(bytes *b, const request *r, uint64_t *token)
{
    switch (r->what) {
    case ASK_ACQUIRE:
        put_grant(b, r, token);
        return true;
    case ASK_HAND_OVER:
        put_handed(b, r, token);
        return true;
    case ASK_TAKE_MANY:
        put_grants(b, r, token);
        return true;
    case ASK_OF_MANY:
        put_letters(b, r, '1');
        return true;
    default:
        return false;
    }
}

static void put_agreeable(bytes *b, const request *r, uint64_t *token)
{
    if (put_lock(b, r, token))
        return;
    switch (r->what) {
    case ASK_INSPECT:
        put(b, "*0\r\n");
        break;
    case ASK_IDENTIFY:
        put(b, "*2\r\n");
        put_run(b, r);
        break;
    case ASK_PROBE:
        put(b, "*6\r\n$0\r\n\r\n$0\r\n\r\n");
        put_run(b, r);
        put(b, "$0\r\n\r\n$0\r\n\r\n");
        break;
    case ASK_COUNT:
    case ASK_EVAL:
        put(b, ":1\r\n");
        break;
    case ASK_PING:
        put_pong(b, r);
        break;
    case ASK_SUBSCRIBE:
    case ASK_UNSUBSCRIBE:
        put_subscribed(b, r);
        break;
    default:
        put(b, "-ERR unknown command\r\n");
        break;
    }
}

/* Somebody else has it, or nobody. */
static void put_refusal(bytes *b, const request *r)
{
    if (r->what == ASK_ACQUIRE)
        put(b, "*5\r\n:0\r\n:20\r\n$2\r\n17\r\n:0\r\n:3\r\n");
    else if (r->what == ASK_INSPECT)
        put(b, "*3\r\n$3\r\nxyz\r\n$1\r\n1\r\n:20\r\n");
    else if (r->what == ASK_HAND_OVER)
        put(b, "*1\r\n:1\r\n");
    else if (r->what == ASK_TAKE_MANY)
        put(b, "$2\r\n-1\r\n");
    else if (r->what == ASK_OF_MANY)
        put_letters(b, r, '0');
    else
        put(b, ":0\r\n");
}

static void put_error(bytes *b, feed *in)
{
    static const char *const texts[] = {
        "ERR",
        "WRONGTYPE Operation against a key",
        "LOADING Redis is loading",
        "BUSY Redis is busy running a script",
        "READONLY You can't write against a read only replica",
        "OOM command not allowed",
        "NOPERM this user has no permissions",
        "MISCONF Errors writing to disk",
        "MOVED 1 127.0.0.1:1",
        "ERR max number of clients reached",
    };
    put(b, "-%s\r\n", texts[feed_choice(in, sizeof texts / sizeof *texts)]);
}

static void put_item(bytes *b, feed *in)
{
    char *text;
    switch (feed_choice(in, 6)) {
    case 0:
    case 1:
        put(b, ":%lld\r\n", (long long)feed_number(in));
        break;
    case 2:
        put_number(b, feed_number(in));
        break;
    case 3:
        text = feed_text(in);
        put_text(b, text);
        free(text);
        break;
    case 4:
        put(b, "$-1\r\n");
        break;
    case 5:
        put_error(b, in);
        break;
    }
}

static void put_items(bytes *b, feed *in)
{
    unsigned n = feed_choice(in, 11);
    put(b, "*%u\r\n", n);
    for (unsigned i = 0; i < n; i++)
        put_item(b, in);
}

static void put_raw(bytes *b, feed *in)
{
    const uint8_t *at;
    size_t len = feed_byte(in);
    len = feed_bytes(in, len, &at);
    memcpy(b->at, at, len);
    b->len = len;
}

/* With numbers in the places where there should be some. */
static void put_near_miss(bytes *b, feed *in, const request *r)
{
    static const int kinds[] = {1, 0, -1, -2};
    if (r->what != ASK_ACQUIRE) {
        put(b, ":%lld\r\n", (long long)feed_number(in));
        return;
    }
    put(b, "*%u\r\n:%d\r\n", 2 + feed_choice(in, 3), kinds[feed_choice(in, 4)]);
    put_number(b, feed_number(in));
    put_number(b, feed_number(in));
}

void make_answer(bytes *b, feed *in, unsigned kind, const request *r,
                 uint64_t *token)
{
    switch (kind) {
    default:
        put_agreeable(b, r, token);
        break;
    case 8:
        put_refusal(b, r);
        break;
    case 9:
        put(b, "-NOSCRIPT No matching script.\r\n");
        break;
    case 10:
        put_error(b, in);
        break;
    case 11:
        put_near_miss(b, in, r);
        break;
    case 12:
        put_items(b, in);
        break;
    case 13:
        put_raw(b, in);
        break;
    case 14:
        put(b, "%c%lld\r\n", "$*:"[feed_choice(in, 3)],
            (long long)feed_number(in));
        break;
    case 15: /* on whatever connection, it is the answer to nothing */
        make_message(b, "");
        put_agreeable(b, r, token);
        break;
    }
}

unsigned answer_grants(unsigned kind, const request *r)
{
    if (kind >= 8 && kind <= 10) /* busy, no script, an error */
        return 0;
    bool is_grant = r->what == ASK_ACQUIRE || r->what == ASK_HAND_OVER ||
                    r->what == ASK_OF_MANY;
    if (r->what == ASK_TAKE_MANY)
        return locks_of(r);
    return is_grant || kind >= 11;
}

void make_message(bytes *b, const char *text)
{
    put(b, "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n");
    put_text(b, text);
}
