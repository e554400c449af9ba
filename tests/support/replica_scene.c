#include "replica_scene.h"

#include "sentinels.h"

/*
 * A replica that has got all at once confirms that, and gets what is written
 * next only when it has told so once more, a second later.
 */
static bool all_follow(server *master, int n)
{
    for (int i = 0; i < 2; i++) {
        server_cmd(master, "SET rlock:test:replicates 1 PX 1000");
        if (server_int(master, "WAIT %d 100", n) < n)
            return false;
    }
    server_cmd(master, "DEL rlock:test:replicates");
    return true;
}

replica_scene replica_scene_servers(int n)
{
    replica_scene f = {
        .s = {.sv = server_start_tcp(NULL), .opts = RLOCK_OPTIONS_INIT},
        .n = n};
    server_load_scripts(f.s.sv);
    for (int i = 0; i < n; i++)
        f.replica[i] = replica_start(f.s.sv);
    if (n > 0)
        EVENTUALLY(SOON, all_follow(f.s.sv, n));
    return f;
}

static void join(replica_scene *f, unsigned min_replicas, int64_t lease_ms)
{
    f->s.opts.min_replicas = min_replicas;
    f->s.opts.replica_wait_ms = REPLICA_SCENE_WAIT_MS;
    scene_client(&f->s, lease_ms, 0);
}

replica_scene replica_scene_start(int n, unsigned min_replicas,
                                  int64_t lease_ms)
{
    replica_scene f = replica_scene_servers(n);
    join(&f, min_replicas, lease_ms);
    return f;
}

replica_scene replica_scene_proxied(int n, unsigned min_replicas,
                                    int64_t lease_ms)
{
    replica_scene f = replica_scene_servers(n);
    f.s.px = proxy_start(f.s.sv);
    join(&f, min_replicas, lease_ms);
    return f;
}

void replica_scene_stop(replica_scene *f)
{
    scene_stop(&f->s);
    for (int i = 0; i < f->n; i++)
        server_stop(f->replica[i]);
}

void replica_scene_use(replica_scene *f, const rlock_lock_options *o)
{
    rlock_free(f->s.lk);
    EXPECT_STATUS(
        rlock_new_ex(f->s.cl, SCENE_LOCK, strlen(SCENE_LOCK), o, &f->s.lk),
        RLOCK_OK);
}

void replica_scene_expect_short(const char *why)
{
    const char *message = rlock_last_error()->message;
    EXPECT_CONTAINS(message, why);
    EXPECT_CONTAINS(message, "lock '" SCENE_LOCK "' at unix:");
}

void replica_scene_cut_off(replica_scene *f, int i)
{
    server_pause(f->replica[i]);
    server_cmd(f->s.sv, "CLIENT KILL TYPE replica");
}

void replica_scene_promote(replica_scene *f, int i)
{
    server_resume(f->replica[i]);
    EXPECT_STR(server_str(f->replica[i], "REPLICAOF NO ONE"), "OK");
}
