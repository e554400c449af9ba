#include "trace.h"

#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loop_thread.h"
#include "test.h"

enum { MOST_CALLS = 1 << 17, MOST_TRIPS = 128, MOST_FUNCTIONS = 2048 };

/* A server nearby has answered by then. */
#define ANSWER_MS 1000

/* Calls in their order, and where each trip begins there. */
static struct {
    const void *fn;
    int depth;
} call[MOST_CALLS];
static struct {
    int begin, end, alike, mutexes, clocks;
} trip[MOST_TRIPS];
static atomic_int n_calls, n_mutexes, n_clocks;
static int n_trips;

/* --- who is watched ------------------------------------------------------- */

static _Thread_local bool watching_this;
static _Thread_local int depth;
static atomic_bool watching_loop;

static bool is_watched(void)
{
    return watching_this ||
           (atomic_load(&watching_loop) && loop_thread_is_this());
}

static void begin(void)
{
    EXPECT(n_trips < MOST_TRIPS);
    trip[n_trips].begin = atomic_load(&n_calls);
    atomic_store(&n_mutexes, 0);
    atomic_store(&n_clocks, 0);
}

static void end(int alike)
{
    EXPECT(atomic_load(&n_calls) < MOST_CALLS);
    trip[n_trips].end = atomic_load(&n_calls);
    trip[n_trips].alike = alike;
    trip[n_trips].mutexes = atomic_load(&n_mutexes);
    trip[n_trips++].clocks = atomic_load(&n_clocks);
}

void trace_begin(void)
{
    begin();
    watching_this = true;
}

void trace_end(void)
{
    watching_this = false;
    end(1);
}

void trace_loop_begin(void)
{
    begin();
    atomic_store(&watching_loop, true);
}

void trace_loop_end(int n)
{
    atomic_store(&watching_loop, false);
    end(n);
}

/* --- what is counted ------------------------------------------------------ */

void __cyg_profile_func_enter(void *fn, void *site);
void __cyg_profile_func_exit(void *fn, void *site);

void __cyg_profile_func_enter(void *fn, void *site)
{
    (void)site;
    depth++;
    if (!is_watched())
        return;
    int i = atomic_fetch_add(&n_calls, 1);
    if (i >= MOST_CALLS)
        return;
    call[i].fn = fn;
    call[i].depth = depth;
}

void __cyg_profile_func_exit(void *fn, void *site)
{
    (void)fn;
    (void)site;
    depth--;
}

static void count(atomic_int *what)
{
    if (is_watched())
        atomic_fetch_add(what, 1);
}

int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    count(&n_mutexes);
    return __real_pthread_mutex_lock(m);
}

int __real_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
    count(&n_mutexes);
    return __real_pthread_mutex_trylock(m);
}

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    count(&n_clocks);
    return __real_clock_gettime(clock, now);
}

/*
 * How often a thread looks whether the answer has come depends on the machine,
 * and may be hundreds of calls. So here it has come when the question has been
 * sent, as from a server that is quick.
 */
ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
    ssize_t sent = __real_send(fd, bytes, n, flags);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (sent > 0)
        poll(&p, 1, ANSWER_MS);
    return sent;
}

/* --- where functions are -------------------------------------------------- */

typedef struct place {
    const void *fn;
    char *file; /* below src/ */
    bool is_base;
    int seen; /* in this trip */
} place;

static place places[MOST_FUNCTIONS];
static int n_places;

static int by_fn(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const place *)a)->fn;
    uintptr_t y = (uintptr_t)((const place *)b)->fn;
    return (x > y) - (x < y);
}

static place *place_of(const void *fn)
{
    place key = {.fn = fn};
    return bsearch(&key, places, (size_t)n_places, sizeof key, by_fn);
}

static void collect(void)
{
    for (int i = 0; i < n_calls; i++) {
        if (place_of(call[i].fn))
            continue;
        EXPECT(n_places < MOST_FUNCTIONS);
        places[n_places++].fn = call[i].fn;
        qsort(places, (size_t)n_places, sizeof *places, by_fn);
    }
}

/* The program itself comes first. */
static int note_bias(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    *(uintptr_t *)arg = info->dlpi_addr;
    return 1;
}

static FILE *ask_where(void)
{
    static char command[1 << 16];
    char path[512];
    uintptr_t bias = 0;
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    EXPECT(len > 0);
    path[len] = '\0';
    dl_iterate_phdr(note_bias, &bias);
    int n =
        snprintf(command, sizeof command, "'%s' -e '%s'", TRIP_ADDR2LINE, path);
    for (int i = 0; i < n_places; i++) {
        EXPECT(n < (int)sizeof command - 20);
        n += snprintf(command + n, 20, " %lx",
                      (unsigned long)((uintptr_t)places[i].fn - bias));
    }
    return popen(command, "r");
}

/* "FILE:LINE", for each in its turn. */
static void find_places(void)
{
    const char *src = RLOCK_SOURCE_DIR "/src/", *base = "base/";
    char line[512];
    collect();
    FILE *answer = ask_where();
    EXPECT(answer);
    for (int i = 0; i < n_places; i++) {
        EXPECT(fgets(line, sizeof line, answer));
        char *file = line + strlen(src), *end = strrchr(line, ':');
        if (strncmp(line, src, strlen(src)) != 0 || !end)
            FAIL("where is a function of the library? %s", line);
        *end = '\0';
        EXPECT(places[i].file = strdup(file));
        places[i].is_base = strncmp(file, base, strlen(base)) == 0;
    }
    EXPECT_INT(pclose(answer), 0);
}

/* --- figures -------------------------------------------------------------- */

static bool is_source(const char *file)
{
    size_t len = strlen(file);
    return len > 2 && strcmp(file + len - 2, ".c") == 0;
}

/* Is it the first of its file that was seen? */
static bool is_first(const place *p)
{
    for (const place *q = places; q < p; q++)
        if (q->seen && strcmp(q->file, p->file) == 0)
            return false;
    return true;
}

static figures figures_of(int t)
{
    figures f = {.mutexes = trip[t].mutexes, .clocks = trip[t].clocks};
    for (int i = 0; i < n_places; i++)
        places[i].seen = 0;
    for (int i = trip[t].begin; i < trip[t].end; i++) {
        place *p = place_of(call[i].fn);
        f.deepest = call[i].depth > f.deepest ? call[i].depth : f.deepest;
        f.calls += !p->is_base;
        p->seen++;
    }
    for (place *p = places; p < places + n_places; p++) {
        if (!p->seen || p->is_base)
            continue;
        f.functions++;
        f.files += is_source(p->file) && is_first(p);
    }
    f.calls /= trip[t].alike;
    f.mutexes /= trip[t].alike;
    f.clocks /= trip[t].alike;
    return f;
}

static int by_size(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* A struct of ints, each of which is a figure. */
figures trace_figures(void)
{
    enum { FIGURES = sizeof(figures) / sizeof(int) };
    int all[FIGURES][MOST_TRIPS], middle[FIGURES];
    figures f;
    find_places();
    EXPECT(n_trips > 0);
    for (int t = 0; t < n_trips; t++) {
        f = figures_of(t);
        for (int i = 0; i < FIGURES; i++)
            all[i][t] = ((int *)&f)[i];
    }
    for (int i = 0; i < FIGURES; i++) {
        qsort(all[i], (size_t)n_trips, sizeof(int), by_size);
        middle[i] = all[i][n_trips / 2];
    }
    memcpy(&f, middle, sizeof f);
    return f;
}
