#include "client/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "wire/keys.h"

void rl_names_fini(rl_names *s)
{
    rl_bytes_fini(&s->text);
    free(s->at);
}

rl_text rl_names_keep(rl_names *s, const void *bytes, size_t len)
{
    rl_text at = s->text.end;
    if (len > 0)
        rl_put_raw(&s->text, bytes, len);
    rl_put_raw(&s->text, "", 1);
    s->lacking = s->lacking || s->text.lacking;
    return at;
}

void *rl_names_more(rl_names *s, void *array, size_t size, size_t n,
                    size_t *room)
{
    if (n < *room)
        return array;
    size_t wanted = *room ? *room * 2 : 64;
    void *grown = realloc(array, wanted * size);
    if (grown)
        *room = wanted;
    s->lacking = s->lacking || !grown;
    return grown;
}

bool rl_names_put(rl_names *s, rl_name x)
{
    rl_name *all = rl_names_more(s, s->at, sizeof *all, s->n, &s->room);
    if (!all)
        return false;
    s->at = all;
    s->at[s->n++] = x;
    return !s->lacking;
}

bool rl_names_add(rl_names *s, const void *name, size_t len, bool guessed)
{
    rl_text text = rl_names_keep(s, name, len);
    return rl_names_put(
        s, (rl_name){.text = text, .len = len, .guessed = guessed});
}

/* --- sorted --------------------------------------------------------------- */

int rl_sorted_compare(const void *a, const void *b)
{
    const rl_sorted *x = a, *y = b;
    size_t len = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->text, y->text, len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

rl_sorted *rl_sorted_new(rl_names *s, size_t n)
{
    rl_sorted *all = calloc(n + 1, sizeof *all);
    s->lacking = s->lacking || !all;
    return all;
}

static void merge(rl_name *into, const rl_name *x)
{
    into->guessed = into->guessed && x->guessed;
    into->permits = into->permits || x->permits;
    into->in_line = into->in_line || x->in_line;
}

void rl_names_sort(rl_names *s)
{
    rl_sorted *all = rl_sorted_new(s, s->n);
    rl_name *kept = malloc((s->n + 1) * sizeof *kept);
    size_t n = 0;
    s->lacking = s->lacking || !kept;
    for (size_t i = 0; !s->lacking && i < s->n; i++)
        all[i] = (rl_sorted){rl_names_text(s, s->at[i].text), s->at[i].len, i};
    if (!s->lacking)
        qsort(all, s->n, sizeof *all, rl_sorted_compare);
    for (size_t i = 0; !s->lacking && i < s->n; i++) {
        const rl_name *x = &s->at[all[i].at];
        if (i == 0 || rl_sorted_compare(&all[i], &all[i - 1]) != 0)
            kept[n++] =
                (rl_name){.text = x->text, .len = x->len, .guessed = true};
        merge(&kept[n - 1], x);
    }
    free(all);
    if (s->lacking) {
        free(kept);
        return;
    }
    s->room = s->n + 1;
    free(s->at);
    s->at = kept;
    s->n = n;
}

/* --- pages ---------------------------------------------------------------- */

/* {cursor, {key, ...}} */
static bool take_page(rl_sink *sink, const rl_cell *c, size_t len)
{
    rl_scan *s = RL_CONTAINER(sink, rl_scan, sink);
    if (!c->str)
        return c->type == REDIS_REPLY_ARRAY;
    if (c->depth == 2)
        return s->take(s->into, c->str, len);
    if (len == 0 || len >= sizeof s->cursor)
        return false;
    memcpy(s->cursor, c->str, len);
    s->cursor[len] = '\0';
    return true;
}

void rl_scan_begin(rl_scan *s, rl_names *into,
                   bool (*take)(rl_names *into, const char *key, size_t len))
{
    *s = (rl_scan){.sink = {take_page}, "0", into, take};
}

bool rl_scan_is_over(const rl_scan *s)
{
    return strcmp(s->cursor, "0") == 0;
}

size_t rl_name_in_braces(const char *name, size_t len, char out[RLOCK_NAME_MAX])
{
    if (len + 2 > RLOCK_NAME_MAX || memchr(name, '{', len))
        return 0;
    out[0] = '{';
    memcpy(out + 1, name, len);
    out[len + 1] = '}';
    return len + 2;
}

bool rl_names_of_waits(rl_names *into, const char *key, size_t len)
{
    const char *name;
    size_t name_len;
    if (rl_key_read_queue(key, len, &name, &name_len))
        return rl_names_add(into, name, name_len, false);
    if (!rl_key_read_line(key, len, &name, &name_len))
        return true;
    return rl_names_put(into,
                        (rl_name){.text = rl_names_keep(into, name, name_len),
                                  .len = name_len,
                                  .in_line = true});
}

bool rl_names_of_side_key(rl_names *into, const char *key, size_t len)
{
    const char *name;
    size_t name_len;
    if (!rl_key_read_token(key, len, &name, &name_len))
        return rl_names_of_waits(into, key, len);
    return rl_names_add(into, name, name_len, false);
}

bool rl_names_of_permits(rl_names *into, const char *key, size_t len)
{
    const char *name;
    size_t name_len;
    if (!rl_key_read_permits(key, len, &name, &name_len))
        return true;
    return rl_names_put(into,
                        (rl_name){.text = rl_names_keep(into, name, name_len),
                                  .len = name_len,
                                  .guessed = true,
                                  .permits = true});
}

bool rl_names_of_lock(rl_names *into, const char *key, size_t len)
{
    return len == 0 || len > RLOCK_NAME_MAX || rl_name_reserved(key, len) ||
           rl_names_add(into, key, len, false);
}
