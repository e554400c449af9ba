/*
 * The test's own connection to its server; server_cmd() and its kin are built
 * on it.
 */
#ifndef TEST_SUPPORT_ASKER_H
#define TEST_SUPPORT_ASKER_H

#include <signal.h>
#include <stdarg.h>

#include "server.h"

typedef struct asker asker;

asker *asker_new(const char *path); /* connects with the first command */
void asker_free(asker *a);
asker *server_asker(server *sv); /* in server.c */

/* server_cmd(), for what passes its own arguments on. */
redisReply *asker_cmd(server *sv, const char *fmt, va_list ap);
/* server_int(), likewise. */
long long asker_int(server *sv, const char *fmt, va_list ap);

/*
 * Around hiredis calls. Writing to a server that ends raises SIGPIPE, and its
 * disposition is the tests' business. Blocking the other signals as well keeps
 * a storm of them from disturbing hiredis.
 */
void asker_block_signals(sigset_t *old);
void asker_unblock_signals(const sigset_t *old);

#endif
