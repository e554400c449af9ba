#include "store.h"

#include <stdlib.h>
#include <string.h>

static word word_of(const text *t)
{
    return (word){t->at, t->len};
}

static entry **bucket_of(store *s, const word *key)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < key->len; i++)
        h = (h ^ (unsigned char)key->at[i]) * 1099511628211u;
    return &s->bucket[(h ^ h >> 32) % STORE_BUCKETS];
}

static void entry_free(entry *e)
{
    entry_empty(e);
    free(e->items);
    text_free(&e->key);
    free(e);
}

void entry_empty(entry *e)
{
    while (e->count > 0)
        entry_drop(e, e->count - 1);
    text_free(&e->value);
}

static bool has_expired(const store *s, const entry *e)
{
    return e->expires_ms >= 0 && s->now_us / 1000 > e->expires_ms;
}

entry *store_find(store *s, const word *key)
{
    entry *e = *bucket_of(s, key);
    for (; e; e = e->next) {
        word k = word_of(&e->key);
        if (word_equal(&k, key))
            break;
    }
    if (e && has_expired(s, e)) {
        store_remove(s, e);
        return NULL;
    }
    return e;
}

entry *store_add(store *s, const word *key, kind kind)
{
    entry **head = bucket_of(s, key);
    entry *e = need_memory(sizeof *e);
    text_add(&e->key, key->at, key->len);
    e->kind = kind;
    e->expires_ms = -1;
    e->next = *head;
    *head = e;
    s->keys++;
    return e;
}

void store_remove(store *s, entry *e)
{
    word key = word_of(&e->key);
    entry **at = bucket_of(s, &key);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    s->keys--;
    entry_free(e);
}

int64_t entry_left_ms(const store *s, const entry *e)
{
    if (e->expires_ms < 0)
        return -1;
    int64_t left = e->expires_ms - s->now_us / 1000;
    return left > 0 ? left : 0;
}

/* --- items ---------------------------------------------------------------- */

item *entry_find(entry *e, const word *name)
{
    for (size_t i = 0; i < e->count; i++) {
        word w = word_of(&e->items[i].name);
        if (word_equal(&w, name))
            return &e->items[i];
    }
    return NULL;
}

const item *entry_item(const entry *e, const word *name)
{
    return entry_find((entry *)e, name);
}

static int compare(const item *a, double score, const word *name)
{
    if (a->score != score)
        return a->score < score ? -1 : 1;
    size_t shorter = a->name.len < name->len ? a->name.len : name->len;
    int order = memcmp(a->name.at, name->at, shorter);
    return order                     ? order
           : a->name.len < name->len ? -1
                                     : a->name.len > name->len;
}

size_t entry_rank(const entry *e, double score, const word *name)
{
    size_t i = 0;
    while (i < e->count && compare(&e->items[i], score, name) < 0)
        i++;
    return i;
}

item *entry_add(entry *e, const word *name, double score)
{
    size_t at = e->kind == KIND_ZSET ? entry_rank(e, score, name) : e->count;
    if (e->count == e->room) {
        e->room = e->room * 2 + 2;
        e->items = need_more(e->items, e->room * sizeof *e->items);
    }
    memmove(&e->items[at + 1], &e->items[at],
            (e->count - at) * sizeof *e->items);
    e->count++;
    e->items[at] = (item){.score = score};
    text_add(&e->items[at].name, name->at, name->len);
    return &e->items[at];
}

void entry_drop(entry *e, size_t i)
{
    text_free(&e->items[i].name);
    text_free(&e->items[i].value);
    e->count--;
    memmove(&e->items[i], &e->items[i + 1], (e->count - i) * sizeof *e->items);
}

/* --- all of it ------------------------------------------------------------ */

void store_clear(store *s)
{
    for (size_t i = 0; i < STORE_BUCKETS; i++)
        while (s->bucket[i])
            store_remove(s, s->bucket[i]);
}

static void copy_entry(store *to, const entry *e)
{
    word key = word_of(&e->key);
    entry *copy = store_add(to, &key, e->kind);
    copy->expires_ms = e->expires_ms;
    text_add(&copy->value, e->value.at, e->value.len);
    for (size_t i = 0; i < e->count; i++) {
        word name = word_of(&e->items[i].name);
        item *x = entry_add(copy, &name, e->items[i].score);
        text_add(&x->value, e->items[i].value.at, e->items[i].value.len);
    }
}

void store_copy(store *to, const store *from)
{
    store_clear(to);
    for (size_t i = 0; i < STORE_BUCKETS; i++)
        for (const entry *e = from->bucket[i]; e; e = e->next)
            copy_entry(to, e);
}

size_t store_count(store *s)
{
    for (size_t i = 0; i < STORE_BUCKETS; i++) {
        entry *next;
        for (entry *e = s->bucket[i]; e; e = next) {
            next = e->next;
            if (has_expired(s, e))
                store_remove(s, e);
        }
    }
    return s->keys;
}
