#include "locks.h"

#include <stdlib.h>
#include <string.h>

void locks_cut(locks *l, size_t n)
{
    while (l->n > n)
        free(l->at[--l->n].name);
    l->lacking = false;
}

void locks_clear(locks *l)
{
    locks_cut(l, 0);
    free(l->at);
    *l = (locks){0};
}

static bool make_room(locks *l)
{
    if (l->n < l->room)
        return true;
    size_t room = l->room ? 2 * l->room : 64;
    locks_row *at = realloc(l->at, room * sizeof *at);
    if (!at)
        return false;
    l->at = at;
    l->room = room;
    return true;
}

bool locks_add(locks *l, size_t server, const rlock_lock_info *is)
{
    char *name = make_room(l) ? malloc(is->name_len + 1) : NULL;
    l->lacking = !name;
    if (!name)
        return false;
    memcpy(name, is->name, is->name_len + 1);
    locks_row *x = &l->at[l->n++];
    *x = (locks_row){
        .name = name, .len = is->name_len, .server = server, .is = *is};
    if (is->n_holders > 0)
        x->holder = is->holders[0];
    return true;
}

bool locks_same_hold(const locks_row *a, const locks_row *b)
{
    return look_is_same_hold(&a->holder, &b->holder, a->is.layout);
}

int locks_order(const locks_row *a, const locks_row *b)
{
    if (a->server != b->server)
        return a->server < b->server ? -1 : 1;
    int c = memcmp(a->name, b->name, a->len < b->len ? a->len : b->len);
    return c ? c : (a->len > b->len) - (a->len < b->len);
}
