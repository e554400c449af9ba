/* The slots of a cluster: whose name is in which, and how one moves. */
#include "cluster_view.h"

/* --- the slot of a name --------------------------------------------------- */

/* CRC-16/XMODEM, bit by bit. */
static unsigned crc16(const char *text, size_t len)
{
    unsigned crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)(unsigned char)text[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1 ^ (crc & 0x8000 ? 0x1021U : 0)) & 0xffff;
    }
    return crc;
}

/* What is between the first brace and the next closing one, if anything. */
unsigned cluster_slot(const char *name)
{
    const char *open = strchr(name, '{');
    const char *end = open ? strchr(open, '}') : NULL;
    if (end && end > open + 1)
        return crc16(open + 1, (size_t)(end - open - 1)) % CLUSTER_SLOTS;
    return crc16(name, strlen(name)) % CLUSTER_SLOTS;
}

/* --- a slot that moves ---------------------------------------------------- */

/* Of whom keys are taken: a living node. */
static int source(cluster *c, unsigned slot, int to)
{
    int from = cluster_slot_owner(c, slot);
    if (from < 0 || from == to || !cluster_lives(c, from))
        FAIL("slot %u cannot move from node %d to %d", slot, from, to);
    return from;
}

void cluster_slot_begin(cluster *c, unsigned slot, int to)
{
    int from = source(c, slot, to);
    cluster_order(c, to, "CLUSTER SETSLOT %u IMPORTING %s", slot,
                  c->at[from].id);
    cluster_order(c, from, "CLUSTER SETSLOT %u MIGRATING %s", slot,
                  c->at[to].id);
}

/* The answer is OK, or NOKEY. */
static void move_key(cluster *c, int from, int to, const char *key, size_t len)
{
    cluster_order(c, from, "MIGRATE 127.0.0.1 %d %b 0 5000",
                  cluster_port(c, to), key, len);
}

void cluster_slot_move_key(cluster *c, const char *key, int to)
{
    int from = source(c, cluster_slot(key), to);
    move_key(c, from, to, key, strlen(key));
}

/* True: there was one. A reply is valid until the next command. */
static bool move_first_key(cluster *c, unsigned slot, int from, int to)
{
    const redisReply *r =
        cluster_cmd(c, from, "CLUSTER GETKEYSINSLOT %u 1", slot);
    EXPECT(r->type == REDIS_REPLY_ARRAY);
    if (r->elements == 0)
        return false;
    size_t len = r->element[0]->len;
    char *key = malloc(len + 1);
    EXPECT(key);
    memcpy(key, r->element[0]->str, len + 1);
    move_key(c, from, to, key, len);
    free(key);
    return true;
}

void cluster_slot_move_keys(cluster *c, unsigned slot, int to)
{
    int from = source(c, slot, to);
    EVENTUALLY(SOON, !move_first_key(c, slot, from, to));
}

/*
 * The target first: it takes a new epoch and tells the others by itself, so
 * that the slot has an owner at every moment. What they are told here they may
 * have heard already, or refuse: the source as long as it has keys, which it
 * drops when it hears of the owner; replicas always.
 */
void cluster_slot_end(cluster *c, unsigned slot, int to)
{
    cluster_order(c, to, "CLUSTER SETSLOT %u NODE %s", slot, c->at[to].id);
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (i != to && cluster_lives(c, i))
            cluster_cmd(c, i, "CLUSTER SETSLOT %u NODE %s", slot, c->at[to].id);
    EVENTUALLY(SOON, cluster_all_name(c, slot, to));
}

void cluster_move_slot(cluster *c, unsigned slot, int to)
{
    cluster_slot_begin(c, slot, to);
    cluster_slot_move_keys(c, slot, to);
    cluster_slot_end(c, slot, to);
}
