/*
 * How much of the library a call goes through, from the program to the server's
 * socket and back: who reads the code, or steps through it, goes that way.
 *
 * A limit only falls. Who makes a trip shorter lowers its limits in the same
 * commit; who has to raise one says why. What is aimed at stands beside it.
 */
#include "loop.h"
#include "trace.h"

enum { WARM = 20, TRIPS = 25 };

/* --- limits --------------------------------------------------------------- */

typedef enum way {
    ACQUIRE,
    BUSY,
    REENTRY,
    UNLOCK,
    IS_HELD,
    START,
    RENEWAL
} way;

/*
 * In the order of `figures`. Calls and functions have 2 % to spare, as compilers
 * may add some of their own. An aim of 0 is none.
 */
static const struct {
    const char *what;
    figures most, aim;
} limits[] = {
    [ACQUIRE] = {"acquire of a free lock",
                 {465, 319, 38, 7, 6, 23},
                 {350, 0, 26, 8, 7, 16}},
    [BUSY] = {"trylock of a busy lock", {491, 304, 38, 7, 6, 23}, {0}},
    [REENTRY] = {"re-entry", {459, 285, 33, 11, 6, 25}, {0}},
    [UNLOCK] = {"unlock", {414, 277, 37, 9, 6, 22}, {0}},
    [IS_HELD] = {"is_held", {21, 21, 6, 1, 1, 11}, {0}},
    [START] = {"start of an acquire", {258, 188, 30, 6, 7, 25}, {0}},
    [RENEWAL] = {"renewal, on the loop", {278, 173, 21, 7, 9, 28}, {0}},
};

static const char *const names[] = {"calls",   "functions", "files",
                                    "mutexes", "clocks",    "deepest"};
enum { FIGURES = sizeof names / sizeof *names };

static int nth(const figures *f, int i)
{
    return ((const int *)f)[i];
}

/* The first figure that is above its limit; NULL: none is. */
static const char *above(const figures *f, const figures *most)
{
    for (int i = 0; i < FIGURES; i++)
        if (nth(f, i) > nth(most, i))
            return names[i];
    return NULL;
}

/* "calls 459 of 468 (aim 350), functions ..." */
static const char *table(way w, const figures *f)
{
    static char text[400];
    int n = 0;
    for (int i = 0; i < FIGURES; i++) {
        int aim = nth(&limits[w].aim, i);
        char *at = text + n;
        size_t room = sizeof text - (size_t)n;
        n += snprintf(
            at, room, aim ? "%s%s %d of %d (aim %d)" : "%s%s %d of %d",
            i ? ", " : "", names[i], nth(f, i), nth(&limits[w].most, i), aim);
    }
    return text;
}

static void expect_within_limits(way w, const figures *f)
{
    const char *which = above(f, &limits[w].most);
    printf("%s: %s\n", limits[w].what, table(w, f));
    if (which)
        FAIL("%s: more %s than before: %s", limits[w].what, which, table(w, f));
}

/* --- calls ---------------------------------------------------------------- */

static void lock(scene *s)
{
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
}

static void unlock(scene *s)
{
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
}

static void try_in_vain(scene *s)
{
    EXPECT_STATUS(rlock_trylock(s->lk), RLOCK_BUSY);
}

static void ask(scene *s)
{
    EXPECT(rlock_is_held(s->lk));
}

static void nothing(scene *s)
{
    (void)s;
}

/* --- trips ---------------------------------------------------------------- */

static rlock *kept;

/* A client without an on_event, and for one thread. */
static scene open_scene(int64_t lease_ms)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    scene s = scene_server(NULL);
    if (lease_ms)
        o.watchdog_lease_ms = lease_ms;
    s.cl = server_client(s.sv, &o);
    s.lk = test_lock(s.cl, SCENE_LOCK);
    return s;
}

/*
 * It keeps a lock all the time, which is due before whatever is acquired later:
 * else it would depend on when the loop had its last turn whether an acquire wakes
 * it, which is 3 calls and 2 files more.
 */
static scene open_warm_scene(void)
{
    scene s = open_scene(0);
    kept = test_lock(s.cl, "kept");
    EXPECT_STATUS(rlock_lock(kept), RLOCK_OK);
    return s;
}

static void close_scene(scene *s)
{
    rlock_free(kept); /* the server forgets it, too */
    rlock_free(s->lk);
    rlock_client_free(s->cl);
    server_stop(s->sv);
}

/* Those of `call`, each of which `undo` undoes. */
static figures count(scene *s, void (*call)(scene *s), void (*undo)(scene *s))
{
    for (int i = 0; i < WARM; i++) {
        call(s);
        undo(s);
    }
    for (int i = 0; i < TRIPS; i++) {
        trace_begin();
        call(s);
        trace_end();
        undo(s);
    }
    return trace_figures();
}

TEST(trip, acquire_of_a_free_lock_stays_within_its_limits)
{
    scene s = open_warm_scene();
    figures f = count(&s, lock, unlock);
    expect_within_limits(ACQUIRE, &f);
    close_scene(&s);
}

TEST(trip, trylock_of_a_busy_lock_stays_within_its_limits)
{
    scene s = open_warm_scene();
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    figures f = count(&s, try_in_vain, nothing);
    expect_within_limits(BUSY, &f);
    close_scene(&s);
}

TEST(trip, reentry_stays_within_its_limits)
{
    scene s = open_warm_scene();
    lock(&s);
    figures f = count(&s, lock, unlock);
    expect_within_limits(REENTRY, &f);
    close_scene(&s);
}

TEST(trip, unlock_stays_within_its_limits)
{
    scene s = open_warm_scene();
    lock(&s);
    figures f = count(&s, unlock, lock);
    expect_within_limits(UNLOCK, &f);
    close_scene(&s);
}

TEST(trip, is_held_stays_within_its_limits)
{
    scene s = open_warm_scene();
    lock(&s);
    figures f = count(&s, ask, nothing);
    expect_within_limits(IS_HELD, &f);
    close_scene(&s);
}

/* The check itself: a figure that is above its limit by one is seen. */
TEST(trip, one_call_or_mutex_too_many_is_told)
{
    scene s = open_warm_scene();
    figures f = count(&s, lock, unlock), most = f;
    EXPECT(!above(&f, &most));
    for (int i = 0; i < FIGURES; i++) {
        EXPECT(nth(&f, i) > 0);
        ((int *)&most)[i]--;
        EXPECT_STR(above(&f, &most), names[i]);
        most = f;
    }
    close_scene(&s);
}

/* --- what the loop has a share in ------------------------------------------ */

static rlock_status outcome;
static bool is_over;

static void note_outcome(rlock *lk, rlock_status status, void *arg)
{
    (void)lk;
    (void)arg;
    outcome = status;
    is_over = true;
}

static void start(scene *s)
{
    is_over = false;
    EXPECT_STATUS(
        rlock_acquire_start(s->lk, 0, RLOCK_WATCHDOG, note_outcome, NULL),
        RLOCK_OK);
}

static void await_and_unlock(scene *s)
{
    LOOP_UNTIL(s->cl, is_over);
    EXPECT_STATUS(outcome, RLOCK_OK);
    unlock(s);
}

TEST(trip, start_of_an_acquire_stays_within_its_limits)
{
    rlock_owner *owner;
    scene s = open_warm_scene();
    EXPECT_STATUS(rlock_owner_new(NULL, &owner), RLOCK_OK);
    rlock_owner_set(owner);
    EXPECT(rlock_client_fd(s.cl) >= 0);
    figures f = count(&s, start, await_and_unlock);
    expect_within_limits(START, &f);
    rlock_owner_free(owner);
    close_scene(&s);
}

/* All that the loop does from one renewal to the next; it sleeps between them. */
TEST(trip, renewal_stays_within_its_limits)
{
    enum { RENEWALS = 5 };
    scene s = open_scene(300);
    lock(&s);
    watch_renewals(s.cl, 2);
    trace_loop_begin();
    watch_renewals(s.cl, RENEWALS);
    trace_loop_end(RENEWALS);
    figures f = trace_figures();
    expect_within_limits(RENEWAL, &f);
    close_scene(&s);
}
