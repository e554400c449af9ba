#include "wire/table.h"

#include <string.h>

rl_cell *rl_table_add(rl_table *t, int type, int depth)
{
    if (depth > RL_TABLE_DEPTH)
        return NULL;
    rl_cell *c = t->count < RL_TABLE_CELLS ? &t->cell[t->count++] : &t->beyond;
    *c = (rl_cell){.type = type, .depth = depth};
    return c;
}

rl_cell *rl_table_add_text(rl_table *t, int type, int depth, const char *text,
                           size_t len)
{
    rl_cell *c = rl_table_add(t, type, depth);
    if (!c || c == &t->beyond || len >= RL_TABLE_TEXT - t->used)
        return c;
    char *at = t->text + t->used;
    memcpy(at, text, len);
    at[len] = '\0';
    t->used += len + 1;
    c->str = at;
    return c;
}

const char *rl_table_value(const rl_table *t, size_t list, const char *name)
{
    int depth = t->cell[list].depth + 1;
    for (size_t i = list + 1; i + 1 < t->count && t->cell[i].depth == depth &&
                              t->cell[i + 1].depth == depth;
         i += 2)
        if (t->cell[i].str && strcmp(t->cell[i].str, name) == 0)
            return t->cell[i + 1].str;
    return NULL;
}
