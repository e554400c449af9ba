/* What a client needs of the system, to be made and to tell its figures: without
   it says so, and nothing is left. */
#include <pthread.h>
#include <string.h>

#include "handles.h"
#include "shim.h"

static void ignore(const rlock_event *e, void *arg)
{
    (void)e;
    (void)arg;
}

/* With all that a client may have. */
static rlock_status make(const char *uri, rlock_client **out)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = uri;
    o.lazy = true;
    o.metrics = true;
    o.metrics_names = 4;
    o.on_event = ignore;
    return rlock_client_new(&o, out);
}

/* Whichever allocation fails. */
static void expect_refused_each(const char *uri)
{
    int nth = 1;
    for (bool failed = true; failed; nth++) {
        rlock_client *cl = NULL;
        shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
        rlock_status s = make(uri, &cl);
        failed = shim_failed(shim_here(), SHIM_ALLOC) > 0;
        shim_clear(shim_here());
        EXPECT_STATUS(s, failed ? RLOCK_ENOMEM : RLOCK_OK);
        EXPECT(failed == (cl == NULL));
        EXPECT(!failed || *rlock_last_error()->message);
        rlock_client_free(cl);
    }
    EXPECT(nth > 5);
}

#define SENTINELS "redis-sentinel://127.0.0.1:1/main"

TEST_CASE(client_needs, one_without_memory_is_not_made,
          expect_refused_each("unix:///nowhere"))
TEST_CASE(client_needs, one_of_sentinels_without_memory_is_not_made,
          expect_refused_each(SENTINELS))
TEST_CASE(client_needs, one_of_a_cluster_without_memory_is_not_made,
          expect_refused_each("redis-cluster://127.0.0.1:1"))

static void expect_refused(const char *uri, shim_call fails, int sys_errno,
                           const char *said)
{
    rlock_client *cl = NULL;
    shim_fail(shim_here(), fails, 1, SHIM_EVER, sys_errno);
    rlock_status s = make(uri, &cl);
    shim_clear(shim_here());
    expect_told(s, RLOCK_ENOMEM, 0, said);
    EXPECT(!cl);
}

TEST_CASE(client_needs, one_without_randomness_is_not_made,
          expect_refused("unix:///nowhere", SHIM_GETRANDOM, ENOMEM,
                         "cannot make a client: out of memory"))
TEST_CASE(client_needs, one_of_sentinels_without_a_thread_is_not_made,
          expect_refused(SENTINELS, SHIM_THREAD, EAGAIN,
                         "cannot make a client: no thread"))

/* Every program has 1024 of them, for all its libraries. */
TEST(client_needs, one_without_a_key_for_threads_is_not_made)
{
    pthread_key_t key;
    rlock_client *cl = NULL;
    while (pthread_key_create(&key, NULL) == 0)
        ;
    expect_told(make("unix:///nowhere", &cl), RLOCK_ENOMEM, 0,
                "no pthread key is left");
    EXPECT(!cl);
}

/* --- figures -------------------------------------------------------------- */

static int pieces;

static bool take(const char *bytes, size_t len, void *arg)
{
    (void)bytes;
    (void)len;
    (void)arg;
    return ++pieces > 0;
}

static void take_metric(const rlock_metric *m, void *arg)
{
    take(m->name, 0, arg);
}

static rlock_status write_figures(rlock_client *cl)
{
    return rlock_metrics_write(&cl, 1, RLOCK_METRICS_TEXT, take, NULL);
}

static rlock_status each_figure(rlock_client *cl)
{
    return rlock_metrics_each(cl, take_metric, NULL);
}

static void expect_none_without_memory(rlock_status (*tell)(rlock_client *cl))
{
    rlock_client *cl;
    int nth = 1;
    EXPECT_STATUS(make("unix:///nowhere", &cl), RLOCK_OK);
    for (bool failed = true; failed; nth++) {
        pieces = 0;
        EXPECT_STATUS(tell(NULL), RLOCK_EINVAL); /* what was said before */
        shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
        rlock_status s = tell(cl);
        failed = shim_failed(shim_here(), SHIM_ALLOC) > 0;
        shim_clear(shim_here());
        EXPECT_STATUS(s, failed ? RLOCK_ENOMEM : RLOCK_OK);
        EXPECT_STATUS(rlock_last_error()->status,
                      failed ? RLOCK_ENOMEM : RLOCK_EINVAL);
        EXPECT(failed == (pieces == 0));
    }
    EXPECT(nth > 2);
    rlock_client_free(cl);
}

TEST_CASE(client_needs, without_memory_no_figure_is_written,
          expect_none_without_memory(write_figures))
TEST_CASE(client_needs, without_memory_no_figure_is_told,
          expect_none_without_memory(each_figure))
