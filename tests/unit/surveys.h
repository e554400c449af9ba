/* A survey by a client of servers that are tables, which notes what it is answered. */
#ifndef UNIT_SURVEYS_H
#define UNIT_SURVEYS_H

#include "client/survey.h"

#include "clustered.h"
#include "handles.h"

/* What is answered about a lock. */
#define ANSWER "*1\r\n:5\r\n"

typedef struct scene {
    rl_survey s;
    rl_names names;
    rl_pass pass[2];
    stub b;
    rlock_client *cl;
    rl_sink sink;
    int noted, pieces; /* answers that came whole, or by pieces */
    char order[400];   /* of those that were asked about, with blanks */
    int noted_at[200]; /* how many had come when the nth was asked about */
    int asked;
    const char *unwanted; /* or NULL */
    bool absurd;
} scene;

static inline scene *scene_of(rl_survey *s)
{
    return RL_CONTAINER(s, scene, s);
}

static inline bool take(rl_names *into, const char *key, size_t len)
{
    return rl_names_add(into, key, len, *key == '?');
}

static inline void write_question(rl_bytes *to, bool whole, const char *name,
                                  const rl_name *lock)
{
    rl_put_call(to, RL_SCRIPT_SURVEY, whole, 1, 0);
    rl_put_bytes(to, name, lock->len);
}

static inline bool note(rl_survey *s, rl_name lock, const rl_reply *r)
{
    scene *x = scene_of(s);
    (void)lock;
    EXPECT(rl_reply_is_array(r, 1) && r->item[0].integer == 5);
    x->noted++;
    return !x->absurd;
}

static inline bool wants(rl_survey *s, const char *name, size_t len)
{
    const char *not_that = scene_of(s)->unwanted;
    EXPECT_INT(strlen(name), len);
    return len < 1000 && (!not_that || strcmp(name, not_that) != 0);
}

static inline void hear(stub *b, const char *words)
{
    scene *x = b->arg;
    static const char call[] = "EVALSHA survey 1 ";
    if (strncmp(words, call, strlen(call)) != 0)
        return;
    EXPECT(x->asked < 200);
    x->noted_at[x->asked++] = x->noted + x->pieces;
    size_t len = strlen(x->order);
    if (len + 40 < sizeof x->order)
        snprintf(x->order + len, sizeof x->order - len, "%.*s ",
                 (int)strcspn(words + strlen(call), "\n"),
                 words + strlen(call));
}

static inline void open_at(scene *x, const char *uri)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    memset(x, 0, sizeof *x);
    o.uri = uri;
    x->cl = stub_client(NULL, o);
    if (uri)
        clustered_open(&x->b, x->cl);
    else
        stub_open(&x->b, x->cl);
    atomic_store(&x->cl->engine.unchecked, false);
    x->b.hear = hear;
    x->b.arg = x;
    x->pass[0].take = x->pass[1].take = take;
    x->s = (rl_survey){.pass = x->pass,
                       .passes = 1,
                       .names = &x->names,
                       .wants = wants,
                       .script = RL_SCRIPT_SURVEY,
                       .write = write_question,
                       .note = note};
    stub_say(&x->b, "EVALSHA survey", ANSWER);
    stub_say(&x->b, "EVAL", ANSWER);
}

static inline void open_scene(scene *x)
{
    open_at(x, NULL);
}

static inline rlock_status make(scene *x)
{
    return rl_survey_make(&x->s, x->cl);
}

static inline void close_scene(scene *x)
{
    rl_names_fini(&x->names);
    for (int i = 0; i < STUB_CONNS; i++)
        EXPECT(!x->b.conn[i].of);
    stub_close(&x->b);
}

#define PAGE(cursor, n, keys) "*2\r\n$1\r\n" cursor "\r\n*" #n "\r\n" keys
#define KEY(name)             "$1\r\n" name "\r\n"

#endif
