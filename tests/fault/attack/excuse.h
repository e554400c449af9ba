/*
 * What the faults explain, and the machine: a judge asks here before it finds
 * anybody guilty.
 */
#ifndef ATTACK_EXCUSE_H
#define ATTACK_EXCUSE_H

#include "judge.h"

/*
 * Does a fault concern this worker and this lock? -1: whichever. A Red lock is
 * concerned by what is about any of its nodes, and a Multi lock by what
 * concerns a member.
 */
bool concerns(const fault *f, int proc, int lock);

/*
 * The last fault between the two times by which the lock was lost; NULL: it was
 * not. A Red lock is lost when a majority of its nodes has forgotten it, or
 * never had it, as when one was away when it was acquired; a Multi lock with
 * any member.
 */
const fault *data_loss(const arena *a, int lock, int64_t from_us,
                       int64_t to_us);

/*
 * Tokens of one server grow with its clock, whatever it forgets. The nodes of a
 * Red lock have clocks that differ: a majority that does not know the token of
 * a faster one, as one node has forgotten it and another one was never told,
 * begins with its own. What is passed on after a loss has a token of before it;
 * so has who reads beside somebody that came back with an older state.
 */
bool tokens_may_restart(const arena *a, int lock, int64_t from_us,
                        int64_t to_us);

/*
 * How much of from..to somebody could not run: the process, or the machine with
 * everything on it.
 */
int64_t stall_us(const verdict *v, int life, int64_t from_us, int64_t to_us);

/*
 * How much of from..to a process was kept from renewing or undoing by faults,
 * with the timeouts that these end in, or by stalls. Harmless faults are none.
 */
int64_t harm_us(const verdict *v, const arena *a, const entry *e,
                int64_t from_us, int64_t to_us);

/*
 * The last fault between the two times by which home has ended and come back
 * without its data; NULL: there was none. One by a command ends nothing that a
 * client at rest could notice.
 */
const fault *home_emptied(const arena *a, int64_t from_us, int64_t to_us,
                          bool by_command);
/* How much of from..to the process could not run, or home could not answer. */
int64_t silence_us(const verdict *v, const arena *a, const entry *e,
                   int64_t from_us, int64_t to_us);

/* How long freeing a client may take: it waits for calls, and these for replicas. */
int64_t client_end_us(const arena *a);

/* How much of from..to it was stopped, and so waited for no processor. */
int64_t stopped_us(const arena *a, const entry *e, int64_t from_us,
                   int64_t to_us);

/* How much of the process's leases has passed while it was suspended. */
int64_t suspended_us(const arena *a, const entry *e, int64_t from_us,
                     int64_t to_us);

/*
 * Was a client closed while a Multi lock of its loop was granted at that time?
 * What the member's client has to tell nobody is told then (see on_event in
 * client.h), and the token of the hold is not known.
 */
bool closed_meanwhile(const verdict *v, const entry *e, int64_t at_us);

/* On a loop, an event for which there is no memory is not told. */
bool may_lack_events(const arena *a, const entry *e, int64_t from_us,
                     int64_t to_us);

/* Had its process no memory for something between the two times? */
bool lacked_memory(const arena *a, const entry *e, int64_t from_us,
                   int64_t to_us);

/* Was there a reason for this hold to be lost? */
bool loss_has_cause(const verdict *v, const arena *a, const entry *e);

#endif
