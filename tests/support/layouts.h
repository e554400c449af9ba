/*
 * The scenes of locks in other layouts than the default: a string, or a
 * timestamp.
 */
#ifndef TEST_SUPPORT_LAYOUTS_H
#define TEST_SUPPORT_LAYOUTS_H

#include "other_client.h"

/* A test of what is the same in both layouts; its body has the parameter
   layout. */
#define BOTH(suite, name)                                                      \
    static void both_##name(rlock_layout layout);                              \
    TEST(suite, string_##name)                                                 \
    {                                                                          \
        both_##name(RLOCK_LAYOUT_STRING);                                      \
    }                                                                          \
    TEST(suite, timestamp_##name)                                              \
    {                                                                          \
        both_##name(RLOCK_LAYOUT_TIMESTAMP);                                   \
    }                                                                          \
    static void both_##name(rlock_layout layout)

rlock *lock_n(rlock_client *cl, rlock_layout layout, const void *name,
              size_t len);
rlock *lock_of(rlock_client *cl, rlock_layout layout, const char *name);

/* Replaces the scene's lock. */
void use_layout(scene *s, rlock_layout layout);
/* A scene whose lock has the layout; watchdog lease and command timeout, 0 for
   the defaults. */
scene scene_of(rlock_layout layout, int64_t lease_ms);
scene scene_of_proxied(rlock_layout layout, int64_t lease_ms,
                       int64_t timeout_ms);
/* The same, and the lock is held. */
scene scene_of_held(rlock_layout layout, int64_t lease_ms);
other_client other_client_of(const scene *s, rlock_layout layout);

/* A script of the layout, for the proxy. */
const char *script_of(rlock_layout layout, const char *verb);

typedef struct text {
    char is[600];
} text;

/* The key of SCENE_LOCK: is it there, and with which value. */
bool held_on_server(server *sv);
text value_of(server *sv);
void expect_value(server *sv, const char *wanted);

/* The server's clock. */
int64_t server_ms(server *sv);
/* What an old program writes that wants to hold until then. */
text stamp_at(int64_t free_at_ms);
/* Another program takes the lock for so long, or tries to; its value. */
text others_value(server *sv, rlock_layout layout, int64_t lease_ms);
bool others_try(server *sv, rlock_layout layout, const char *value,
                int64_t lease_ms);
text others_take(server *sv, rlock_layout layout, int64_t lease_ms);
/* Another program takes it although it is held. */
text others_overwrite(server *sv, rlock_layout layout);
void others_release(server *sv);
/* The seconds of a value of ours. */
long long seconds_of(const char *value);
/* An old program that died leaves this. */
void leave_stamp(server *sv, const char *value);

/* How long the lock will be held, as the server has it. */
int64_t ttl_of(rlock *lk);
bool is_locked(rlock *lk);
/* A timestamp of ours promises up to a second more, and up to 0.1 s by its
   digits. */
int64_t longest(rlock_layout layout, int64_t lease_ms);
/* The loss was told once, whatever has been asked since. */
void expect_lost_once(scene *s);
/* The unlock tells of the loss as well. */
void unlock_lost(scene *s);
uint64_t token_of_a_hold(rlock *lk);

#endif
