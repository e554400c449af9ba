/* A client of a server that is a table, and what rlock_servers() tells of it. */
#ifndef UNIT_SURVEYED_H
#define UNIT_SURVEYED_H

#include <rlock/servers.h>

#include "handles.h"
#include "stub.h"

enum { MOST = 24 };

typedef struct told {
    int n;
    rlock_server_info at[MOST];
    char address[MOST][80], error[MOST][200], eviction[MOST][40];
    char fsync[MOST][20], missing[MOST][200];
} told;

static inline void keep(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text ? text : "not told");
}

static inline bool note(const rlock_server_info *x, void *arg)
{
    told *t = arg;
    int i = t->n++;
    EXPECT(i < MOST);
    t->at[i] = *x;
    keep(t->address[i], sizeof t->address[i], x->address);
    keep(t->error[i], sizeof t->error[i], x->error);
    keep(t->eviction[i], sizeof t->eviction[i], x->eviction);
    keep(t->fsync[i], sizeof t->fsync[i], x->fsync);
    keep(t->missing[i], sizeof t->missing[i], x->missing);
    return true;
}

typedef struct scene {
    stub b;
    rlock_client *cl;
    rl_engine *e;
    told t;
} scene;

static inline void open_with(scene *s, const char *uri)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    o.uri = uri;
    o.connect_timeout_ms = 2000;
    s->cl = stub_client(NULL, o);
    s->e = &s->cl->engine;
    stub_open(&s->b, s->cl);
    atomic_store(&s->e->unchecked, false);
}

static inline void open_scene(scene *s)
{
    open_with(s, NULL);
}

static inline rlock_status look(scene *s)
{
    s->t.n = 0;
    return rlock_servers(s->cl, note, &s->t);
}

/* The only one. */
static inline const rlock_server_info *only(scene *s)
{
    EXPECT_STATUS(look(s), RLOCK_OK);
    EXPECT_INT(s->t.n, 1);
    return &s->t.at[0];
}

static inline void expect_no_connection_left(const scene *s)
{
    for (int i = 0; i < STUB_CONNS; i++)
        EXPECT(!s->b.conn[i].of);
}

static inline void close_scene(scene *s)
{
    expect_no_connection_left(s);
    stub_close(&s->b);
}

#define INFO   "role:master\r\nrun_id:one\r\nmaxmemory_policy:noeviction\r\n"
#define SECOND "run_id:one\r\n"

static inline void open_well(scene *s)
{
    open_scene(s);
    stub_say(&s->b, "CONFIG GET appendfsync",
             "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n");
    stub_say(&s->b, "CONFIG GET min-replicas-to-write",
             "*2\r\n$21\r\nmin-replicas-to-write\r\n$1\r\n2\r\n");
    stub_say(&s->b, "CONFIG GET databases",
             "*2\r\n$9\r\ndatabases\r\n$2\r\n16\r\n");
    stub_say_text(&s->b, "INFO", INFO, 0);
    stub_say_text(&s->b, "INFO server", SECOND, 0);
    stub_row_add(
        &s->b, (stub_row){.words = "CLIENT ID", .answer = ":8\r\n", .nth = 2});
}

#endif
