/*
 * The scenes that many tests need: a client with recorded events and a lock,
 * directly at a server or behind a proxy; threads that wait for a lock; other
 * processes; and what is left in Redis. No function returns an error: what
 * cannot be done fails the test.
 */
#ifndef TEST_SUPPORT_SCENE_H
#define TEST_SUPPORT_SCENE_H

#include "leftovers.h"
#include "proxy.h"

/* The name of a scene's lock. */
#define SCENE_LOCK "job"

/* A watchdog's lease: its renewals are soon seen, and a machine under load does
   not end it. */
#define BRISK_MS 1500

typedef struct scene {
    server *sv;
    proxy *px; /* NULL: the client talks to the server itself */
    events *ev;
    rlock_options opts;
    rlock_client *cl;
    rlock *lk; /* SCENE_LOCK */
} scene;

/* A server that has the scripts; no client yet. args: see server_start(). */
scene scene_server(const char *args);
/* Its client: watchdog lease and command timeout, 0 for the defaults. */
void scene_client(scene *s, int64_t lease_ms, int64_t timeout_ms);
/* Both; behind a proxy with scene_proxied(). */
scene scene_start(int64_t lease_ms, int64_t timeout_ms);
scene scene_proxied(int64_t lease_ms, int64_t timeout_ms);
/* Either, and the test's thread has locked its lock. */
scene scene_held(int64_t lease_ms, int64_t timeout_ms);
scene scene_held_proxied(int64_t lease_ms, int64_t timeout_ms);
/* A client with these options, of a server that need not have the scripts; it
   goes with scene_stop(), or stays after scene_leave(). */
scene scene_with(server *sv, const rlock_options *opts);
void scene_free_client(scene *s); /* and the lock */
/* A forked child frees its copies of both, and ends well. */
void scene_free_in_child(scene *s);
void scene_leave(scene *s); /* and the events */
void scene_stop(scene *s);

/* A client that cannot connect, and says so after how many ms. */
int64_t expect_no_client(const char *uri, int64_t connect_ms);

rlock_stats stats_of(rlock_client *cl);
/* Of its figures for Prometheus the one with this name and these labels. */
double figure_of(rlock_client *cl, const char *name, const char *labels);

/* The holder id of whoever takes a lock by hand. */
#define BY_HAND "other:1:1:00000000-0000-4000-8000-000000000000"

/* Script calls that the server has seen. */
long long script_calls(server *sv);
/* Clients in the queue of a lock. */
long long queued(server *sv, const char *name);
/* Hold count of a lock, summed over its holders; 0: it is free. */
long long levels(server *sv, const char *name);
/* Is the key there? */
bool key_exists(server *sv, const char *key);
/* Time left of a key, as PTTL has it: -1 without expiry, -2 without a key. */
long long key_ttl(server *sv, const char *key);
/* Commands that the server has seen, with this one; and requests that a proxy
   has: without PEXPIRE, by which a client that holds something asks for a sign
   of life. */
long long commands(server *sv);
int requests(proxy *px);
/* The only holder of SCENE_LOCK, and its count. */
void read_lock(server *sv, char *holder, size_t size, int *count);
/* Another program takes the lock, for ttl_ms, or without expiry for 0. */
void take_by_hand(server *sv, const char *name, int64_t ttl_ms);
/* The same without expiry, and with the key by which rlock_scan() finds it, as
   one of ours. */
void hold_by_hand(server *sv, const char *name);

/* So many renewals more; of a client, or of the scene's. */
void watch_renewals(rlock_client *cl, int more);
void expect_renewals(scene *s, int more);
/* The scene's hold is lost for good, once, and everything says so. */
void expect_hold_lost(scene *s);
/*
 * What a fault disturbs, without it: lock, keep it until it has been renewed
 * (if the scene has a lease of its own), unlock; nothing is left.
 */
void expect_undisturbed(scene *s);
/* A scene in which that was seen. */
scene scene_undisturbed(const char *args, int64_t lease_ms, int64_t timeout_ms);
scene scene_undisturbed_proxied(int64_t lease_ms, int64_t timeout_ms);

/* So many levels, or all of them answer this. */
void lock_times(rlock *lk, int n);
void unlock_times(rlock *lk, int n, rlock_status wanted);

/* What a call answered that began then: it has come in time. */
rlock_status in_time(rlock_status status, int64_t began_ms, int64_t limit_ms);

/* For test_spawn(): locks, waiting as long as it takes, and unlocks. */
intptr_t lock_once(void *lk);

/* What a verb answers on a thread that ends right afterwards. */
rlock_status on_another_thread(rlock_status (*verb)(rlock *lk), rlock *lk);

/*
 * A waiter looks by itself after 1.5 to 2.5 s, and when it waits for another
 * program's lock, after 0.19 to 0.31 s. What happens within this time after it
 * fell asleep is due to a ring, or to that program.
 */
#define WELL_BEFORE_POLL_MS 1300

/* A thread that acquires, and unlocks when it is told to. */
typedef struct waiter waiter;
waiter *waiter_start(rlock *lk, int64_t wait_ms, int64_t lease_ms);
/*
 * Until n clients are queued for SCENE_LOCK, and n_threads of this client are
 * asleep. One more look, for the doorbell that has just come up, may follow.
 */
void waiters_settle(server *sv, int n, rlock_client *cl, int n_threads);
bool waiter_returned(waiter *w);
/* Until acquire has returned; what, and when (test_now_ms; may be NULL). */
rlock_status waiter_status(waiter *w, int64_t *at_ms);
/* It has the lock, and in good time: it was rung, and had not to look for it. */
void waiter_expect_rung(waiter *w, int64_t since_ms);
/* Has it unlock, if it acquired, and joins it; what acquire returned. */
rlock_status waiter_end(waiter *w);

/*
 * Another process. One that makes a client of its own is to be started before
 * the test has any thread, that is, before the server: ThreadSanitizer needs
 * that. It must not use server_cmd() and its kin. The two sides talk by single
 * characters. It is killed when the test's process ends.
 */
typedef struct child child;
child *child_start(void (*fn)(child *c, void *arg), void *arg);
/* The same by another fork(). */
child *child_start_by(pid_t (*new_process)(void),
                      void (*fn)(child *c, void *arg), void *arg);
/* Hands over the server's URI, and takes it; it is valid until the next. */
void child_give_uri(child *c, const server *sv);
const char *child_take_uri(child *c);
void child_tell(child *c, char what);
void child_expect(child *c, char what);
char child_hear(child *c);
pid_t child_pid(const child *c);
void child_stop(child *c);     /* SIGSTOP, returns when it has stopped */
void child_continue(child *c); /* SIGCONT */
void child_kill(child *c);     /* SIGKILL, and frees it */
void child_end(child *c);      /* expects a good end, and frees it */

/*
 * So many of them at one server, at most 8: each takes its URI, expects 'g', which
 * comes when all have it, and tells 'd' when it is done. The server is the caller's.
 */
server *children_meet(int n, void (*fn)(child *c, void *arg));

/* A client of the user "app", whose password is "secret". */
rlock_client *user_client(server *sv);

#endif
