/*
 * The scenes of Multi locks: some locks of one letter each, on one server or
 * on several, and the Multi lock of them. No function returns an error: what
 * cannot be done fails the test.
 */
#ifndef TEST_SUPPORT_MULTI_SCENE_H
#define TEST_SUPPORT_MULTI_SCENE_H

#include "scene.h"

enum { MULTI_SCENE_MAX = 8 };

typedef struct multi_scene {
    size_t n;
    rlock *lk[MULTI_SCENE_MAX]; /* the members */
    server *sv[MULTI_SCENE_MAX];
    char name[MULTI_SCENE_MAX][2];
    rlock *all; /* the Multi lock */
} multi_scene;

/* A member for each letter of names; multi_scene_join() then makes the Multi lock. */
void multi_scene_add(multi_scene *m, server *sv, rlock_client *cl,
                     const char *names);
void multi_scene_join(multi_scene *m);
/* Both: of a scene's client, of any client, or of two scenes' clients. */
multi_scene multi_scene_of(const scene *s, const char *names);
multi_scene multi_scene_of_client(server *sv, rlock_client *cl,
                                  const char *names);
multi_scene multi_scene_across(const scene *s, const char *names,
                               const scene *t, const char *others);
void multi_scene_free(multi_scene *m);
/* Frees it, and stops its scene or scenes. */
void multi_scene_end(multi_scene *m, scene *s);
void multi_scene_end_across(multi_scene *m, scene *s, scene *t);
/* The same, one after the other, and there have been so many losses. */
void multi_scene_end_with_losses(multi_scene *m, scene *s, int losses);
/* The same; the server has nothing but tokens and tombstones. */
void multi_scene_end_undone(multi_scene *m, scene *s);

/* The last error is about the member of this position, from 1. */
void expect_blame(size_t position);
/* Until one thread of the client sleeps in the queue of the lock. */
void asleep(server *sv, const char *name, rlock_client *cl);

/* Hold count of one member, or of all, on its server: is it this? */
bool multi_scene_is_at(const multi_scene *m, size_t i, int wanted);
bool multi_scene_all_at(const multi_scene *m, int wanted);

/* The same, and the report says what each is instead. */
void expect_levels(const multi_scene *m, int wanted);
/* Not by the calling thread. */
void expect_unheld(const rlock *lk);
/* The last error is about this member, and names its lock. */
void expect_blame_of(size_t position, const char *name);

#endif
