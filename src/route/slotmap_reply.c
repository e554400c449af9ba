/*
 * Read piece by piece, as the parser comes by them. An answer that makes no
 * sense is refused as a whole: half a map sends half the locks nowhere.
 *
 * CLUSTER NODES is a text of lines, "id address flags master ping pong epoch
 * link slots..."; CLUSTER SLOTS a list of ranges, {first, last, {host, port,
 * id, ...}, ...}, of which the first server is the master, and the others are
 * its replicas. A node is named once for each range of its, always at the same
 * address; one that the server has lost sight of, at none: "" and 0.
 */
#include "route/slotmap_reply.h"

#include <stdlib.h>
#include <string.h>

#define FIELDS 8

/* --- CLUSTER NODES -------------------------------------------------------- */

typedef struct word {
    const char *at;
    size_t len;
} word;

/* The next word of the line, which ends before `end`. */
static word next_word(const char **at, const char *end)
{
    word w = {*at, 0};
    while (w.at + w.len < end && w.at[w.len] != ' ')
        w.len++;
    *at = w.at + w.len < end ? w.at + w.len + 1 : end;
    return w;
}

static bool has_flag(word flags, const char *flag)
{
    size_t len = strlen(flag);
    for (const char *at = flags.at, *end = flags.at + flags.len; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t n = (size_t)((comma ? comma : end) - at);
        if (n == len && memcmp(at, flag, len) == 0)
            return true;
        at += n + 1;
    }
    return false;
}

static bool read_number(word w, int64_t *out)
{
    *out = 0;
    if (w.len == 0 || w.len > 18)
        return false;
    for (size_t i = 0; i < w.len; i++) {
        if (w.at[i] < '0' || w.at[i] > '9')
            return false;
        *out = *out * 10 + w.at[i] - '0';
    }
    return true;
}

/*
 * "10.0.0.1:6379@16379,name", if it is there. CLUSTER SLOTS has the addresses
 * for clients, but no replica of which it has not heard lately.
 */
static void read_address(word w, rl_slot_owner *n)
{
    const char *end = memchr(w.at, '@', w.len), *colon = NULL;
    for (const char *at = w.at; end && at < end; at++)
        colon = *at == ':' ? at : colon;
    int64_t port;
    if (!colon || colon == w.at || colon - w.at >= (long)sizeof n->host ||
        !read_number((word){colon + 1, (size_t)(end - colon - 1)}, &port) ||
        port == 0 || port > 65535)
        return;
    memcpy(n->host, w.at, (size_t)(colon - w.at));
    n->port = (int)port;
}

static bool read_node(rl_slotmap_reply *c, const char *at, const char *end)
{
    word w[FIELDS];
    int64_t epoch;
    for (size_t i = 0; i < FIELDS; i++)
        w[i] = next_word(&at, end);
    if (w[0].len != RL_NODE_ID || !read_number(w[6], &epoch))
        return false;
    bool master = has_flag(w[2], "master");
    if (c->count >= (master ? RL_SLOT_OWNERS : RL_SLOT_OWNERS / 2))
        return true;
    rl_slot_owner *n = &c->node[c->count++];
    *n = (rl_slot_owner){
        .epoch = epoch, .master = master, .failed = has_flag(w[2], "fail")};
    memcpy(n->id, w[0].at, w[0].len);
    if (!master)
        read_address(w[1], n);
    if (has_flag(w[2], "myself"))
        c->self = c->count;
    return true;
}

static bool take_nodes(rl_sink *s, const rl_cell *cell, size_t len)
{
    rl_slotmap_reply *c = RL_CONTAINER(s, rl_slotmap_reply, nodes);
    if (!cell->str || cell->depth > 0) {
        c->absurd = true;
        return true;
    }
    const char *end = cell->str + len;
    for (const char *at = cell->str; at < end;) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        if (!line)
            line = end;
        c->absurd = (line > at && !read_node(c, at, line)) || c->absurd;
        at = line + 1;
    }
    return true;
}

/* --- CLUSTER SLOTS -------------------------------------------------------- */

static rl_slot_owner *find(rl_slotmap_reply *c, const char *id, size_t len)
{
    for (size_t i = 0; i < c->count; i++)
        if (len == RL_NODE_ID && memcmp(c->node[i].id, id, len) == 0)
            return &c->node[i];
    return NULL;
}

/* Where the node is; the same wherever it is named. */
static void place(rl_slotmap_reply *c, rl_slot_owner *n)
{
    bool elsewhere = n->port != c->port || strcmp(n->host, c->host) != 0;
    c->absurd = c->absurd || (n->named && elsewhere);
    n->named = true;
    strcpy(n->host, c->host);
    n->port = (int)c->port;
}

static void claim_range(rl_slotmap_reply *c, const rl_slot_owner *n)
{
    long long first = c->range[0], last = c->range[1];
    for (long long i = first; i <= last; i++) {
        c->claimed += c->owner[i] == 0;
        c->owner[i] = (uint16_t)(n - c->node + 1);
    }
}

static bool is_range(const rl_slotmap_reply *c)
{
    long long first = c->range[0], last = c->range[1];
    return c->ends == 2 && first >= 0 && last < RL_HASH_SLOTS && first <= last;
}

/*
 * A node has been named, the nth of its range. One that has become a master in
 * between is left for the next time; and nobody is known for the slots of one
 * that the server has lost sight of.
 */
static void name(rl_slotmap_reply *c, rl_slot_owner *n)
{
    bool somewhere = c->port > 0 && c->port <= 65535;
    if (!is_range(c) || (!somewhere && (c->port != 0 || *c->host))) {
        c->absurd = true;
        return;
    }
    if (!n || !somewhere)
        return;
    place(c, n);
    if (c->nodes_seen == 1 && n->master)
        claim_range(c, n);
}

static void read_field(rl_slotmap_reply *c, const rl_cell *cell, size_t len)
{
    switch (c->fields++) {
    case 0: /* nil or "?": the server does not know its name */
        c->absurd = c->absurd || len >= sizeof c->host;
        len = c->absurd || !cell->str || (len == 1 && *cell->str == '?') ? 0
                                                                         : len;
        if (len > 0)
            memcpy(c->host, cell->str, len);
        c->host[len] = '\0';
        break;
    case 1:
        c->port = cell->type == REDIS_REPLY_INTEGER ? cell->integer : -1;
        break;
    case 2:
        name(c, cell->str ? find(c, cell->str, len) : NULL);
        break;
    default:
        break;
    }
}

static void begin_part(rl_slotmap_reply *c, int depth)
{
    if (depth == 1)
        c->ends = c->nodes_seen = 0;
    if (depth == 2) {
        c->nodes_seen++;
        c->fields = 0;
    }
}

static bool take_slots(rl_sink *s, const rl_cell *cell, size_t len)
{
    rl_slotmap_reply *c = RL_CONTAINER(s, rl_slotmap_reply, slots);
    bool list = cell->type == REDIS_REPLY_ARRAY;
    if (cell->depth > RL_TABLE_DEPTH)
        return false;
    if (list)
        begin_part(c, cell->depth);
    if (cell->depth < 2 && !list)
        c->absurd = true;
    else if (cell->depth == 2 && cell->type == REDIS_REPLY_INTEGER &&
             c->ends < 2)
        c->range[c->ends++] = cell->integer;
    else if (cell->depth == 3)
        read_field(c, cell, len);
    return true;
}

void rl_slotmap_reply_init(rl_slotmap_reply *c)
{
    memset(c, 0, sizeof *c);
    c->nodes.take = take_nodes;
    c->slots.take = take_slots;
}

const rl_slot_owner *rl_slotmap_reply_find(const rl_slotmap_reply *c,
                                           const char *id)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->node[i].id, id) == 0)
            return &c->node[i];
    return NULL;
}
