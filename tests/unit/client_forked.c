/* What a child frees of a client that its parent has made: all descriptors, and what
   memory was whole. */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/topology.h"
#include "clustered.h"
#include "handles.h"
#include "remains.h"

static void ignore(const rlock_event *e, void *arg)
{
    (void)e, (void)arg;
}

/* With all that a client may have. */
static rlock_client *client_with_all(const char *uri)
{
    rlock_client *cl;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = uri;
    o.lazy = true;
    o.connect_timeout_ms = STUB_WAY_MS;
    o.metrics = true;
    o.metrics_names = 4;
    o.on_event = ignore;
    o.dispatch_events = true;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
    EXPECT(rlock_client_fd(cl) >= 0);
    if (cl->engine.cluster)
        clustered_tell(&cl->engine, 1, 8191);
    return cl;
}

/* The mutexes stay, as threads that are not there still seem to wait. */
static void close_in_child(rlock_client *cl, const remains *before, long left)
{
    remains made = remains_now();
    expect_told(rlock_client_close(cl, RLOCK_CLOSE_RELEASE_HELD), RLOCK_EFORKED,
                0,
                "the client was made before fork(): it is freed, and what the "
                "parent holds is not released");
    remains now = remains_now();
    EXPECT_INT(now.descriptors, before->descriptors);
    EXPECT_INT(now.objects, made.objects);
    EXPECT_BETWEEN(now.blocks - before->blocks, 0, left);
    _exit(0);
}

/* What another thread may have been changing stays: two blocks of each pool, and
   what knows the servers. */
static void expect_freed(const char *uri, long left)
{
    int status;
    remains before = remains_now();
    rlock_client *cl = client_with_all(uri);
    rl_topology_stop(&cl->engine); /* nobody is just being connected to */
    pid_t child = fork();
    if (child == 0)
        close_in_child(cl, &before, left);
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT_INT(status, 0);
    EXPECT_STATUS(rlock_client_close(cl, 0), RLOCK_OK); /* it is the parent's */
}

static rl_mutex *of_holds(rl_core *c)
{
    return &c->holds.mutex;
}

static rl_mutex *of_rooms(rl_core *c)
{
    return &c->rooms.mutex;
}

static rl_mutex *of_longest(rl_core *c)
{
    return &c->longest.mutex;
}

/* What was being changed at the fork is not walked: more is left. */
static void expect_left(rl_mutex *(*mutex)(rl_core *c))
{
    int status;
    remains before = remains_now();
    rlock_client *cl = client_with_all("unix:///nowhere");
    rl_mutex_lock(mutex(&cl->engine.core));
    pid_t child = fork();
    if (child == 0) {
        EXPECT_STATUS(rlock_client_close(cl, 0), RLOCK_EFORKED);
        EXPECT(SANITIZED || remains_now().blocks - before.blocks > 2);
        _exit(0);
    }
    rl_mutex_unlock(mutex(&cl->engine.core));
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT_INT(status, 0);
    rlock_client_free(cl);
}

TEST_CASE(client_forked, leaves_holds_that_were_being_changed,
          expect_left(of_holds))
TEST_CASE(client_forked, leaves_rooms_that_were_being_changed,
          expect_left(of_rooms))
TEST_CASE(client_forked, leaves_waits_that_were_being_measured,
          expect_left(of_longest))

TEST_CASE(client_forked, of_a_socket_is_freed,
          expect_freed("unix:///nowhere", 2))
TEST_CASE(client_forked, of_a_server_is_freed,
          expect_freed("redis://me:secret@127.0.0.1:1/3", 2))
TEST_CASE(client_forked, of_sentinels_is_freed,
          expect_freed("redis-sentinel://127.0.0.1:1/main", 5))
TEST_CASE(client_forked, of_a_cluster_is_freed, expect_freed(CLUSTERED, 11))

/* Over which a map was being told; the parent's own way to close it is another. */
TEST(client_forked, of_a_cluster_closes_the_connection_that_asks)
{
    int status, fd = dup(STDOUT_FILENO);
    rlock_client *cl = client_with_all(CLUSTERED);
    rl_topology_stop(&cl->engine);
    cl->engine.cluster->fd = fd;
    pid_t child = fork();
    if (child == 0) {
        EXPECT_STATUS(rlock_client_close(cl, 0), RLOCK_EFORKED);
        EXPECT_INT(fcntl(fd, F_GETFD), -1);
        _exit(0);
    }
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT_INT(status, 0);
    rlock_client_free(cl);
    EXPECT(fcntl(fd, F_GETFD) >= 0);
    close(fd);
}
