/* `rlock run` where a lock is not at one plain server: behind Sentinels, in a
   Cluster, over TLS. COMMAND runs under it, also while its server changes. */
#include "cluster_scene.h"
#include "command.h"
#include "rlock_config.h"
#include "scene.h"
#include "sentinels.h"

#define NAME "job"

/* COMMAND goes on until the file is there. */
static const char until_told[] = "echo $$ >\"$1\"; "
                                 "until [ -e \"$2\" ]; do sleep 0.05; done; "
                                 "echo done; exit 7";

/* Files are those of this server. */
static command *start(const server *sv, const char *replicas, const char *lease,
                      const char *name)
{
    command *c = RLOCK(NULL, "--min-replicas", replicas, "run", "-l", lease,
                       name, "sh", "-c", until_told, "sh",
                       command_file(sv, "began"), command_file(sv, "end"));
    command_number(sv, "began");
    return c;
}

static void end(const server *sv, command *c)
{
    FILE *f = fopen(command_file(sv, "end"), "w");
    EXPECT(f != NULL);
    fclose(f);
    EXPECT_INT(command_status(c), 7);
    EXPECT_STR(command_out(c), "done\n");
    command_free(c);
}

/* --- Sentinels ------------------------------------------------------------ */

typedef struct watched {
    server *master, *replica;
    sentinels *n;
} watched;

static watched watched_start(void)
{
    watched w = {.master = server_start_tcp(NULL)};
    w.replica = replica_start(w.master);
    w.n = sentinels_start(w.master, 3);
    setenv("RLOCK_URI", sentinels_uri(w.n), 1);
    EVENTUALLY(SOON, replica_follows(w.master));
    return w;
}

static void watched_stop(watched *w)
{
    sentinels_stop(w->n);
    server_stop(w->replica);
    server_stop(w->master);
}

TEST(homes, behind_sentinels_command_runs_under_the_lock)
{
    watched w = watched_start();
    command *c = start(w.master, "0", "30", NAME);
    EXPECT_INT(levels(w.master, NAME), 1);
    EXPECT_INT(command_end(RLOCK(NULL, "run", "-n", NAME, "true")), 124);
    end(w.master, c);
    EXPECT_INT(levels(w.master, NAME), 0);
    watched_stop(&w);
}

/* The replica has the lock, as it was waited for. */
TEST(homes, behind_sentinels_command_outlives_its_master)
{
    watched w = watched_start();
    command *c = start(w.master, "1", "30", NAME);
    EVENTUALLY(SOON, sentinels_agree(w.n, w.master));
    EXPECT(sentinels_fail_over(w.n, w.replica, ELECTED_SOON));
    EVENTUALLY(SOON, sentinels_agree(w.n, w.replica));
    EXPECT_INT(levels(w.replica, NAME), 1);
    end(w.master, c);
    EVENTUALLY(SOON, levels(w.replica, NAME) == 0);
    watched_stop(&w);
}

TEST(homes, behind_sentinels_a_lock_that_is_lost_ends_command)
{
    watched w = watched_start();
    command *c = start(w.master, "0", "1.5", NAME);
    server_cmd(w.master, "DEL " NAME);
    EXPECT_INT(command_status(c), 123);
    EXPECT_STR(command_out(c), "");
    command_free(c);
    watched_stop(&w);
}

/* --- A Cluster ------------------------------------------------------------ */

TEST(homes, in_a_cluster_each_name_is_on_its_own_server)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    setenv("RLOCK_URI", cluster_uri(l.c), 1);
    for (int i = 0; i < 3; i++) {
        char name[40], exists[200];
        snprintf(name, sizeof name, "%s", cluster_name_on(l.c, i, NAME));
        snprintf(exists, sizeof exists, "redis-cli -p %d exists '%s'",
                 cluster_port(l.c, i), name);
        command *c = RLOCK(NULL, "run", "-n", name, "-c", exists);
        EXPECT_INT(command_status(c), 0);
        EXPECT_STR(command_out(c), "1\n");
        EXPECT(!cluster_has_key(l.c, name));
        command_free(c);
    }
    cluster_scene_stop(&l);
}

TEST(homes, in_a_cluster_command_outlives_its_master)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    setenv("RLOCK_URI", cluster_uri(l.c), 1);
    const char *name = cluster_name_on(l.c, 1, NAME);
    const server *files = cluster_server(l.c, 0);
    int heir = cluster_replica_of(l.c, 1);
    command *c = start(files, "1", "30", name);
    cluster_fail_over(l.c, heir);
    cluster_await_owner(l.c, name, heir);
    EXPECT(cluster_has_key(l.c, name));
    end(files, c);
    EVENTUALLY(SOON, !cluster_has_key(l.c, name));
    cluster_scene_stop(&l);
}

TEST(homes, in_a_cluster_command_goes_on_while_its_slot_moves)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    setenv("RLOCK_URI", cluster_uri(l.c), 1);
    const char *name = cluster_name_on(l.c, 1, NAME);
    const server *files = cluster_server(l.c, 0);
    command *c = start(files, "0", "3", name);
    cluster_move_slot(l.c, cluster_slot(name), 2);
    long long calls = script_calls(cluster_server(l.c, 2));
    EVENTUALLY(SOON, script_calls(cluster_server(l.c, 2)) > calls + 2);
    EXPECT(cluster_has_key(l.c, name));
    end(files, c);
    EVENTUALLY(SOON, !cluster_has_key(l.c, name));
    cluster_scene_stop(&l);
}

/* --- TLS ------------------------------------------------------------------ */

static void need_tls(void)
{
#ifndef RL_HAS_OPENSSL
    SKIP("rlock was built without OpenSSL");
#endif
}

TEST(homes, over_tls_command_runs_under_the_lock)
{
    need_tls();
    server *sv = server_start(NULL);
    authority *a = authority_new();
    int port = secure_listen(sv, a, "server", "yes");
    setenv("RLOCK_URI", secure_uri("127.0.0.1", port), 1);
    command *c =
        RLOCK(NULL, "--tls-ca-file", authority_file(a, "ca"), "--tls-cert-file",
              authority_file(a, "client"), "--tls-key-file",
              authority_file(a, "client.key"), "run", "-n", NAME, "redis-cli",
              "-s", server_path(sv), "exists", NAME);
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), "1\n");
    EXPECT_INT(levels(sv, NAME), 0);
    command_free(c);
    authority_free(a);
    server_stop(sv);
}

TEST(homes, over_tls_a_server_that_nobody_vouches_for_is_125)
{
    need_tls();
    server *sv = server_start(NULL);
    authority *a = authority_new();
    int port = secure_listen(sv, a, "server", "no");
    setenv("RLOCK_URI", secure_uri("127.0.0.1", port), 1);
    command *c = RLOCK(NULL, "run", "-n", NAME, "echo", "ran");
    EXPECT_INT(command_status(c), 125);
    EXPECT_STR(command_out(c), "");
    EXPECT_CONTAINS(command_err(c), "certificate");
    command_free(c);
    authority_free(a);
    server_stop(sv);
}
