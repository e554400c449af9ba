/*
 * The life of a client. Lock handles may outlive the client they were made
 * from, so the struct is counted: it goes with the last handle. What the
 * client runs (its engine) goes with rlock_client_free(), which waits until no
 * call is inside.
 */
#ifndef RL_RUN_CLIENT_H
#define RL_RUN_CLIENT_H

#include <stdatomic.h>
#include <stdint.h>

#include <rlock/client.h>

#include "run/engine.h"
#include "run/owner.h"

struct rlock_client {
    uint64_t process; /* fixed; in which it was made, see rl_os_process() */
    atomic_uint refs; /* the client itself, its handles, its calls */
    atomic_uint calls;
    atomic_bool closing;
    rl_mutex mutex; /* of the condition that calls has become 0 */
    rl_cond idle;
    rl_mutex following; /* of followers */
    rl_list followers;  /* members of Multi locks (lock/multi.h): canceling here
                           ends their waits, wherever they are */
    rl_owner_listener listener;
    rl_home home; /* what a group of holds knows of it */
    rl_engine engine;
};

/* Is this a child of the process that made the client? */
bool rl_client_is_forked(const rlock_client *cl);

/* What a group needs of its home. */
void rl_client_init_home(rlock_client *cl);

void rl_client_ref(rlock_client *cl);
void rl_client_unref(rlock_client *cl);

/*
 * At the begin and the end of every public call. enter answers RLOCK_OK,
 * RLOCK_EFORKED or RLOCK_ECLOSED, without setting the thread's error; leave
 * pairs with RLOCK_OK. In between the thread cannot be canceled. Who drives a
 * job of the client enters also while it is being closed: the job was started
 * before.
 */
rlock_status rl_client_enter(rlock_client *cl, int *cancel_state);
void rl_client_leave(rlock_client *cl, int cancel_state);

/* The same, and the thread's error is set. cl may be NULL: RLOCK_EINVAL. */
rlock_status rl_client_begin(rlock_client *cl, int *cancel_state);

/* Into followers, and out of them, if it is there. */
void rl_client_follow(rlock_client *cl, rl_link *follower);
void rl_client_unfollow(rlock_client *cl, rl_link *follower);

/* Is it being closed, and does the calling thread drive a job of it? */
bool rl_client_is_draining(const rlock_client *cl);

#endif
