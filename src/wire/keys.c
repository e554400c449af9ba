/*
 * Names of keys and channels, as lua/README.md has them: each is written from
 * pieces, into a key or straight into a command. Nothing is kept.
 */
#include "wire/keys.h"

#include <string.h>

#define TOKEN    "rlock_token"
#define QUEUE    "rlock_queue"
#define LINE     "rlock_line"
#define WANTS    "rlock_wants"
#define LEASES   "rlock_leases"
#define UNDONE   "rlock_undone"
#define WAITS    ":who" /* behind that: a tombstone's key ends in a uuid */
#define SBELL    "rlock_sbell"
#define REDISSON "redisson_lock__channel"
#define RWLOCK   "redisson_rwlock"
#define FREED    "redisson_sc"
#define COUNTED  "redisson_countdownlatch__channel__"
#define MARK     ":rwlock_timeout:1"
#define TIMEOUT  ":timeout" /* of a semaphore: who has permits, until when */

/* A piece of text at a time; returns where the next one goes. */
static char *add(char *at, const void *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

static bool is_tagged(const void *name, size_t len)
{
    return memchr(name, '{', len) != NULL;
}

/*
 * By Redisson's rule "a" and "{a}" have the same side keys. Tokens may be
 * shared, and tombstones are a hold's, but a ring that takes the other name's
 * waiter out of the queue is lost, and a grant of the other name's lock is worse.
 * So each name in braces has a queue, a line, and a list of who waits of its own,
 * one "{}" further: that of "{a}" is "{a}{}", that of "{a}{}" has two.
 */
bool rl_name_is_in_braces(const void *text, size_t len)
{
    const char *name = text;
    while (len >= 4 && memcmp(name + len - 2, "{}", 2) == 0)
        len -= 2;
    return len >= 2 && name[0] == '{' && name[len - 1] == '}' &&
           !memchr(name + 1, '{', len - 1);
}

static size_t size_of(const char *prefix, const void *name, size_t len)
{
    return strlen(prefix) + len + (is_tagged(name, len) ? 1 : 3);
}

static char *write_key(char *at, const char *prefix, const void *name,
                       size_t len)
{
    bool tagged = is_tagged(name, len);
    at = add(at, prefix, strlen(prefix));
    at = add(at, ":{", tagged ? 1 : 2);
    at = add(at, name, len);
    return tagged ? at : add(at, "}", 1);
}

static char *write_uuid(char *at, const char *holder)
{
    at = add(at, ":", 1);
    return add(at, holder + strlen(holder) - RL_UUID_LEN, RL_UUID_LEN);
}

static rl_key key_of(const char *prefix, const void *name, size_t len)
{
    rl_key k;
    k.len = size_of(prefix, name, len);
    write_key(k.text, prefix, name, len);
    return k;
}

rl_key rl_key_token(const void *name, size_t len)
{
    return key_of(TOKEN, name, len);
}

static rl_key key_apart(const char *prefix, const void *name, size_t len)
{
    rl_key k = key_of(prefix, name, len);
    if (rl_name_is_in_braces(name, len))
        k.len = (size_t)(add(k.text + k.len, "{}", 2) - k.text);
    return k;
}

rl_key rl_key_queue(const void *name, size_t len)
{
    return key_apart(QUEUE, name, len);
}

rl_key rl_key_line(const void *name, size_t len)
{
    return key_apart(LINE, name, len);
}

rl_key rl_key_wants(const void *name, size_t len)
{
    return key_apart(WANTS, name, len);
}

/* What is behind the prefix; false: it does not begin so. */
static bool cut(const char *key, size_t len, const char *prefix,
                const char **rest, size_t *rest_len)
{
    size_t n = strlen(prefix);
    if (len <= n || memcmp(key, prefix, n) != 0)
        return false;
    *rest = key + n;
    *rest_len = len - n;
    return true;
}

static bool is_name(const char *name, size_t len)
{
    return len > 0 && len <= RLOCK_NAME_MAX && !rl_name_reserved(name, len);
}

/*
 * What is behind the prefix is {name} of a name without braces, or the name, or
 * of one that is in braces, that and {}.
 */
static bool read_apart(const char *key, size_t len, const char *prefix,
                       const char **name, size_t *name_len)
{
    if (!cut(key, len, prefix, name, name_len))
        return false;
    if (rl_name_is_in_braces(*name, *name_len)) {
        bool further = memcmp(*name + *name_len - 2, "{}", 2) == 0;
        *name += further ? 0 : 1;
        *name_len -= 2;
    }
    return is_name(*name, *name_len);
}

bool rl_key_read_queue(const char *key, size_t len, const char **name,
                       size_t *name_len)
{
    return read_apart(key, len, QUEUE ":", name, name_len);
}

bool rl_key_read_line(const char *key, size_t len, const char **name,
                      size_t *name_len)
{
    return read_apart(key, len, LINE ":", name, name_len);
}

/* {name}, or a name that has a brace; "{}" is such a one. */
static bool read_tagged(const char **name, size_t *name_len)
{
    size_t n = *name_len;
    if (n > 2 && **name == '{' && (*name)[n - 1] == '}' &&
        !memchr(*name + 1, '{', n - 1)) {
        *name += 1;
        *name_len = n - 2;
    }
    return is_name(*name, *name_len);
}

bool rl_key_read_token(const char *key, size_t len, const char **name,
                       size_t *name_len)
{
    return cut(key, len, TOKEN ":", name, name_len) &&
           read_tagged(name, name_len);
}

bool rl_key_read_permits(const char *key, size_t len, const char **name,
                         size_t *name_len)
{
    size_t behind = strlen(TIMEOUT);
    if (len <= behind || memcmp(key + len - behind, TIMEOUT, behind) != 0 ||
        !memchr(key, '{', len))
        return false;
    *name = key;
    *name_len = len - behind;
    return read_tagged(name, name_len);
}

rl_key rl_key_redisson(const void *name, size_t len)
{
    return key_of(REDISSON, name, len);
}

rl_key rl_key_redisson_rw(const void *name, size_t len)
{
    return key_of(RWLOCK, name, len);
}

/* Redisson puts its name into braces whatever it has already. */
static char *write_latch_channel(char *at, const void *name, size_t len)
{
    at = add(at, COUNTED "{", strlen(COUNTED) + 1);
    return add(add(at, name, len), "}", 1);
}

rl_key rl_key_redisson_latch(const void *name, size_t len)
{
    rl_key k;
    k.len = (size_t)(write_latch_channel(k.text, name, len) - k.text);
    return k;
}

rl_key rl_key_redisson_semaphore(const void *name, size_t len)
{
    return key_of(FREED, name, len);
}

rl_key rl_key_tombstone(const void *name, size_t len, const char *holder)
{
    rl_key k = key_of(UNDONE, name, len);
    k.len = (size_t)(write_uuid(k.text + k.len, holder) - k.text);
    return k;
}

static void put(rl_bytes *to, const char *prefix, const void *name, size_t len)
{
    char *word = rl_put_word(to, size_of(prefix, name, len));
    if (word)
        write_key(word, prefix, name, len);
}

void rl_put_token_key(rl_bytes *to, const void *name, size_t len)
{
    put(to, TOKEN, name, len);
}

static void put_apart(rl_bytes *to, const char *prefix, const char *behind,
                      const void *name, size_t len)
{
    const char *more = rl_name_is_in_braces(name, len) ? "{}" : "";
    char *word = rl_put_word(to, size_of(prefix, name, len) + strlen(more) +
                                     strlen(behind));
    if (!word)
        return;
    word = write_key(word, prefix, name, len);
    if (*more)
        word = add(word, more, strlen(more));
    if (*behind)
        add(word, behind, strlen(behind));
}

void rl_put_queue_key(rl_bytes *to, const void *name, size_t len)
{
    put_apart(to, QUEUE, "", name, len);
}

void rl_put_line_key(rl_bytes *to, const void *name, size_t len)
{
    put_apart(to, LINE, "", name, len);
}

void rl_put_line_keys(rl_bytes *to, const void *name, size_t len)
{
    rl_put_line_key(to, name, len);
    put_apart(to, WANTS, "", name, len);
}

void rl_put_leases_key(rl_bytes *to, const void *name, size_t len)
{
    put_apart(to, LEASES, "", name, len);
}

/* Begins a key named as Redisson's are, with so much behind the name, which is in
   braces unless it has some; returns where that goes, or NULL. */
static char *put_suffixed(rl_bytes *to, const void *name, size_t len,
                          size_t behind)
{
    bool tagged = is_tagged(name, len);
    char *word = rl_put_word(to, len + (tagged ? 0 : 2) + behind);
    if (!word || tagged)
        return word ? add(word, name, len) : NULL;
    return add(add(add(word, "{", 1), name, len), "}", 1);
}

/* Of the first level, which has the longest lease: one is enough. */
void rl_put_mark_key(rl_bytes *to, const void *name, size_t len,
                     const char *holder)
{
    size_t id = strlen(holder), mark = strlen(MARK);
    char *word = put_suffixed(to, name, len, 1 + id + mark);
    if (word)
        add(add(add(word, ":", 1), holder, id), MARK, mark);
}

void rl_put_redisson_rw_channel(rl_bytes *to, const void *name, size_t len)
{
    put(to, RWLOCK, name, len);
}

void rl_put_permits_key(rl_bytes *to, const void *name, size_t len)
{
    char *word = put_suffixed(to, name, len, strlen(TIMEOUT));
    if (word)
        add(word, TIMEOUT, strlen(TIMEOUT));
}

void rl_put_waits_key(rl_bytes *to, const void *name, size_t len)
{
    put_apart(to, UNDONE, WAITS, name, len);
}

void rl_put_redisson_channel(rl_bytes *to, const void *name, size_t len)
{
    put(to, REDISSON, name, len);
}

void rl_put_redisson_semaphore_channel(rl_bytes *to, const void *name,
                                       size_t len)
{
    put(to, FREED, name, len);
}

void rl_put_redisson_latch_channel(rl_bytes *to, const void *name, size_t len)
{
    char *word = rl_put_word(to, strlen(COUNTED) + len + 2);
    if (word)
        write_latch_channel(word, name, len);
}

static bool is_sharded(const char *bell)
{
    return strncmp(bell, RL_SBELL_PREFIX, strlen(RL_SBELL_PREFIX)) == 0;
}

rl_key rl_key_bell(const void *name, size_t len, const char *bell)
{
    rl_key k = {0};
    if (is_sharded(bell)) {
        k = key_of(SBELL, name, len);
        k.len = (size_t)(write_uuid(k.text + k.len, bell) - k.text);
    } else {
        k.len = strlen(bell);
        memcpy(k.text, bell, k.len);
    }
    return k;
}

void rl_put_bell(rl_bytes *to, const void *name, size_t len, const char *bell)
{
    if (!is_sharded(bell)) {
        rl_put_text(to, bell);
        return;
    }
    char *word = rl_put_word(to, size_of(SBELL, name, len) + 1 + RL_UUID_LEN);
    if (word)
        write_uuid(write_key(word, SBELL, name, len), bell);
}

void rl_put_tombstone_key(rl_bytes *to, const void *name, size_t len,
                          const char *holder)
{
    char *word = rl_put_word(to, size_of(UNDONE, name, len) + 1 + RL_UUID_LEN);
    if (word)
        write_uuid(write_key(word, UNDONE, name, len), holder);
}

const char *rl_name_reserved(const void *name, size_t len)
{
    static const char *const prefixes[] = {
        TOKEN ":",       QUEUE ":",       LINE ":",       WANTS ":",
        LEASES ":",      UNDONE ":",      RL_BELL_PREFIX, RL_SBELL_PREFIX,
        RL_GRANT_PREFIX, RL_PROBE_PREFIX, REDISSON ":",   RWLOCK ":",
        FREED ":"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t n = strlen(prefixes[i]);
        if (len >= n && memcmp(name, prefixes[i], n) == 0)
            return prefixes[i];
    }
    return NULL;
}
