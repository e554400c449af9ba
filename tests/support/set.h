/*
 * The scenes of Multi locks: some locks of one letter each, on one server or
 * on several, and the Multi lock of them. No function returns an error: what
 * cannot be done fails the test.
 */
#ifndef TEST_SUPPORT_SET_H
#define TEST_SUPPORT_SET_H

#include "scene.h"

enum { SET_MAX = 8 };

typedef struct set {
    size_t n;
    rlock *lk[SET_MAX]; /* the members */
    server *sv[SET_MAX];
    char name[SET_MAX][2];
    rlock *all; /* the Multi lock */
} set;

/* A member for each letter of names; set_join() then makes the Multi lock. */
void set_add(set *m, server *sv, rlock_client *cl, const char *names);
void set_join(set *m);
/* Both: of a scene's client, of any client, or of two scenes' clients. */
set set_of(const scene *s, const char *names);
set set_of_client(server *sv, rlock_client *cl, const char *names);
set set_across(const scene *s, const char *names, const scene *t,
               const char *others);
void set_free(set *m);
/* Frees it, and stops its scene or scenes. */
void set_end(set *m, scene *s);
void set_end_across(set *m, scene *s, scene *t);
/* The same, one after the other, and there have been so many losses. */
void set_end_with_losses(set *m, scene *s, int losses);
/* The same; the server has nothing but tokens and tombstones. */
void set_end_undone(set *m, scene *s);

/* The last error is about the member of this position, from 1. */
void expect_blame(size_t position);
/* Until one thread of the client sleeps in the queue of the lock. */
void asleep(server *sv, const char *name, rlock_client *cl);

/* Hold count of one member, or of all, on its server: is it this? */
bool set_is_at(const set *m, size_t i, int wanted);
bool set_all_at(const set *m, int wanted);

/* The same, and the report says what each is instead. */
void expect_levels(const set *m, int wanted);
/* Not by the calling thread. */
void expect_unheld(const rlock *lk);
/* The last error is about this member, and names its lock. */
void expect_blame_of(size_t position, const char *name);

#endif
