/*
 * A survey: all masters are gone through, for keys that tell of locks, and each
 * lock is asked about. Over connections of its own, as replies of any size are
 * taken piece by piece, and on another one somebody's late reply might come
 * first. Called by a program's thread.
 */
#ifndef RL_CLIENT_SURVEY_H
#define RL_CLIENT_SURVEY_H

#include <rlock/client.h>

#include "client/names.h"
#include "run/engine.h"

/* One way to go through the keys. */
typedef struct rl_pass {
    const char *match; /* which keys; NULL: all */
    const char *type;  /* of what type; NULL: any */
    /* What a key tells of. */
    bool (*take)(rl_names *into, const char *key, size_t len);
    /* The keys are names, of which not all are locks: a command about one, and
       whether the text that it answers, ended by a NUL, and cut if len is
       larger, may be a lock's. NULL: all are asked about. */
    void (*ask)(rl_bytes *to, const char *name, size_t len);
    bool (*fits)(const char *text, size_t len);
} rl_pass;

typedef struct rl_survey {
    const rl_pass *pass;
    size_t passes;
    rl_names *names; /* of locks at the server that is being asked */
    /* Is the lock asked about? NULL: each is. */
    bool (*wants)(struct rl_survey *s, const char *name, size_t len);
    /* What is asked about it. */
    rl_script_id script;
    void (*write)(rl_bytes *to, bool whole, const char *name,
                  const rl_name *lock);
    /* Takes the answer piece by piece, after begin, and may add names; or NULL: */
    rl_sink *sink;
    void (*begin)(struct rl_survey *s, rl_name lock);
    /* Takes it whole, and may add names; false: it makes no sense. */
    bool (*note)(struct rl_survey *s, rl_name lock, const rl_reply *r);
} rl_survey;

/* Those that have slots now, each once, or the only one; 0: *f says why they are
   not known. */
size_t rl_survey_masters(rl_engine *e, rl_node *out[RL_SERVERS], rl_fault *f);

/* Otherwise the thread's error is set; RLOCK_ECLOSED: also while it went on. */
rlock_status rl_survey_make(rl_survey *s, rlock_client *cl);

#endif
