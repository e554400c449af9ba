/*
 * `rlock run` with a COMMAND that has a child, in one group: who may die or stop,
 * and what becomes of all of them.
 */
#ifndef TEST_SUPPORT_PACK_H
#define TEST_SUPPORT_PACK_H

#include "command.h"

/* From a death to that of the last of the group: 100 ms where nobody else wants the
   processor, and never the lease, of 30 s. */
#define AT_ONCE_MS 2000

/* COMMAND and its child write their pids, and ignore SIGTERM. */
extern const char pack_of_two[];

typedef struct pack {
    server *sv;
    command *c;
    pid_t command, child;
} pack;

/* Under SCENE_LOCK. kind: "-s", "-x" or "-N1"; NULL: a plain lock. script: for sh,
   which writes the child's pid into $1 and its own into $2. */
pack pack_start(const char *kind, const char *lease, const char *script);
bool pack_is_gone(const pack *p);
void pack_stop(pack *p);

#endif
