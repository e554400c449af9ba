/*
 * The scenes of locks in other layouts than the default: a string, or a
 * timestamp.
 */
#ifndef TEST_SUPPORT_LAYOUTS_H
#define TEST_SUPPORT_LAYOUTS_H

#include "rival.h"

/* A test of what is the same in both layouts; its body has the parameter
   layout. */
#define BOTH(name)                                                             \
    static void both_##name(rlock_layout layout);                              \
    TEST(layouts, string_##name)                                               \
    {                                                                          \
        both_##name(RLOCK_LAYOUT_STRING);                                      \
    }                                                                          \
    TEST(layouts, timestamp_##name)                                            \
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
rival rival_of(const scene *s, rlock_layout layout);

/* A script of the layout, for the proxy. */
const char *script_of(rlock_layout layout, const char *verb);

typedef struct text {
    char is[600];
} text;

/* The key of SCENE_LOCK: is it there, and with which value. */
bool held_on_server(server *sv);
text value_of(server *sv);
void expect_value(server *sv, const char *wanted);

#endif
