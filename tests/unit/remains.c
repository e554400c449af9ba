/* What the library makes it frees: memory, mutexes, conditions, descriptors. The
   runner counts them after each test. */
#include "remains.h"

#include <errno.h>

#include "hold/hold.h"
#include "hold/longest.h"
#include "hold/room.h"
#include "rlock_config.h"
#include "shim.h"
#include "test.h"

/* Is this memory what it should be, as far as nobody looks at it? */
static bool is_full_of(const unsigned char *at, int byte, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (at[i] != byte)
            return false;
    return true;
}

TEST(remains, new_memory_is_no_row_of_zeros)
{
    unsigned char *volatile p = malloc(100);
    size_t counted = (size_t)remains_now().blocks;
    bool zero = is_full_of(p, 0, 100);
    free(p);
    if (counted == 0)
        SKIP("a sanitizer looks after memory");
    EXPECT(!zero);
}

TEST(remains, what_is_made_is_counted_until_it_is_freed)
{
    remains before = remains_now();
    void *volatile p = malloc(7);
    remains now = remains_now();
    p = realloc(p, 8);
    remains grown = remains_now();
    free(p);
    if (now.blocks == 0)
        SKIP("a sanitizer looks after memory");
    EXPECT(now.blocks == before.blocks + 1 && now.last == 7);
    EXPECT(grown.blocks == before.blocks + 1 && grown.last == 8);
    EXPECT_INT(remains_now().blocks, before.blocks);
}

/* --- clients -------------------------------------------------------------- */

static void on_event(const rlock_event *ev, void *arg)
{
    (void)ev, (void)arg;
}

static rlock_status make(const char *uri, bool dispatch, rlock_client **out)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = uri;
    o.lazy = true;
    o.on_event = on_event;
    o.dispatch_events = dispatch;
    return rlock_client_new(&o, out);
}

static void make_and_free(const char *uri, bool dispatch)
{
    rlock_client *cl;
    rlock *lk;
    EXPECT_STATUS(make(uri, dispatch, &cl), RLOCK_OK);
    EXPECT_STATUS(rlock_new(cl, "job", &lk), RLOCK_OK);
    EXPECT(!dispatch || rlock_client_fd(cl) >= 0);
    rlock_free(lk);
    rlock_client_free(cl);
}

/* Whichever allocation fails, what was made until then goes. */
static void make_without_memory(const char *uri)
{
    rlock_client *cl = NULL;
    rlock_status s = RLOCK_ENOMEM;
    for (int nth = 1; s != RLOCK_OK; nth++) {
        remains before = remains_now();
        shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
        s = make(uri, false, &cl);
        shim_clear(shim_here());
        if (s == RLOCK_OK)
            break;
        EXPECT_STATUS(s, RLOCK_ENOMEM);
        remains now = remains_now();
        EXPECT(now.blocks == before.blocks && now.objects == before.objects &&
               now.descriptors == before.descriptors);
    }
    rlock_client_free(cl);
}

#define CLIENT(name, uri)                                                      \
    TEST_CASE(remains, nothing_of_a_client_of_##name,                          \
              make_and_free(uri, false))                                       \
    TEST_CASE(remains, nothing_of_a_client_that_dispatches_of_##name,          \
              make_and_free(uri, true))                                        \
    TEST_CASE(remains, nothing_where_memory_lacks_for_a_client_of_##name,      \
              make_without_memory(uri))

CLIENT(a_server, "redis://user:word@127.0.0.1:1/3")
CLIENT(a_socket, "unix:///nowhere")
#ifdef RL_HAS_OPENSSL
CLIENT(a_server_with_tls, "rediss://127.0.0.1:1")
#endif

/* --- in a child ------------------------------------------------------------ */

/* Threads that are not there still seem to wait for them: they are left. */
TEST(remains, the_mutexes_of_what_a_child_drops)
{
    rl_holds holds = {.closed = false};
    rl_rooms rooms = {.closed = false};
    rl_longest longest;
    EXPECT(rl_holds_init(&holds, NULL, &rooms, "host:1", 30000, 0, true));
    EXPECT(rl_rooms_init(&rooms) && rl_longest_init(&longest));
    remains made = remains_now();
    rl_holds_fini(&holds, true);
    rl_rooms_fini(&rooms, true);
    rl_longest_fini(&longest, true);
    EXPECT_INT(remains_now().objects, made.objects);
    rl_mutex_fini(&holds.mutex);
    rl_mutex_fini(&rooms.mutex);
    rl_mutex_fini(&longest.mutex);
}
