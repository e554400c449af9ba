/*
 * What is known of one server, of what it says: read of INFO, CLUSTER INFO,
 * CONFIG GET and SENTINEL MASTER. No I/O.
 */
#ifndef RL_CLIENT_FACTS_H
#define RL_CLIENT_FACTS_H

#include <rlock/servers.h>

#include "base/error.h"
#include "wire/table.h"

#define RL_TRIPS_MAX 32

/* Texts that `of` points to, if they are told. */
typedef struct rl_facts {
    rlock_server_info of;
    char address[320], error[320];
    char version[32], run_id[48], eviction[40], fsync[16];
    char missing[200], master[320], master_flags[80];
} rl_facts;

/* Nothing is told yet. */
void rl_facts_init(rl_facts *x, const char *address);

/* It could not be asked, and nothing is told. */
void rl_facts_fail(rl_facts *x, const rl_fault *why);

/* Replies, as texts that end in a NUL. */
void rl_facts_read_info(rl_facts *x, const char *info);
void rl_facts_read_keys(rl_facts *x, const char *info, int database);
void rl_facts_read_cluster(rl_facts *x, const char *text);
/* A list of names and values. */
void rl_facts_read_sentinel(rl_facts *x, const rl_table *t);
/* An option of the server, by its name. */
void rl_facts_read_config(rl_facts *x, const char *name, const char *value);

/* Fills *out with what a master's INFO says of the i-th replica; false: there
   are no more. */
bool rl_facts_read_replica(const char *info, unsigned i, const char *scheme,
                           rl_facts *out);

/* INFO over a second connection; and then the numbers that the server has for
   the two, and for the first one once more; 0: it does not tell. */
void rl_facts_note_second(rl_facts *x, const char *info);
void rl_facts_note_ids(rl_facts *x, int64_t first, int64_t second,
                       int64_t first_again);

/* Round trips, which are put in order. */
void rl_facts_note_trips(rl_facts *x, int64_t *us, size_t n);

/* As it is told: the texts that are there. Valid as long as *x stays. */
rlock_server_info rl_facts_tell(const rl_facts *x);

#endif
