/*
 * Every event is copied and kept until the recorder is freed, so that messages
 * stay valid without a rule about which event may still follow.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "server.h"

typedef struct record record;

struct record {
    record *older;
    rlock_event event; /* its texts are copies */
    int64_t at_ms;
};

struct events {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    record *newest; /* guarded by mutex */
};

events *events_new(void)
{
    events *ev = calloc(1, sizeof *ev);
    EXPECT(ev);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&ev->mutex, NULL);
    pthread_cond_init(&ev->changed, &attr);
    pthread_condattr_destroy(&attr);
    return ev;
}

void events_free(events *ev)
{
    if (!ev)
        return;
    while (ev->newest) {
        record *r = ev->newest;
        ev->newest = r->older;
        free((char *)r->event.name);
        free((char *)r->event.message);
        free((char *)r->event.owner);
        free(r);
    }
    pthread_cond_destroy(&ev->changed);
    pthread_mutex_destroy(&ev->mutex);
    free(ev);
}

/* Also checks what the header promises of every event. */
static void on_event(const rlock_event *event, void *arg)
{
    events *ev = arg;
    EXPECT(event && event->name && event->message && event->owner);
    EXPECT_INT(event->name[event->name_len], 0);
    record *r = calloc(1, sizeof *r);
    EXPECT(r);
    r->event = *event;
    r->at_ms = test_now_ms();
    char *name = malloc(event->name_len + 1);
    r->event.message = strdup(event->message);
    r->event.owner = strdup(event->owner);
    EXPECT(name && r->event.message && r->event.owner);
    memcpy(name, event->name, event->name_len + 1);
    r->event.name = name;
    pthread_mutex_lock(&ev->mutex);
    r->older = ev->newest;
    ev->newest = r;
    pthread_cond_broadcast(&ev->changed);
    pthread_mutex_unlock(&ev->mutex);
}

void events_hook(events *ev, rlock_options *opts)
{
    opts->on_event = on_event;
    opts->event_arg = ev;
}

static int count_locked(events *ev, rlock_event_type type)
{
    int n = 0;
    for (record *r = ev->newest; r; r = r->older)
        n += r->event.type == type;
    return n;
}

int events_count(events *ev, rlock_event_type type)
{
    pthread_mutex_lock(&ev->mutex);
    int n = count_locked(ev, type);
    pthread_mutex_unlock(&ev->mutex);
    return n;
}

/* All there were, the newest first: "5 1", as far as there is room. */
static const char *told(events *ev, char *out, size_t size)
{
    size_t used = 0;
    *out = '\0';
    pthread_mutex_lock(&ev->mutex);
    for (record *r = ev->newest; r && used + 8 < size; r = r->older)
        used += (size_t)snprintf(out + used, size - used, " %d",
                                 (int)r->event.type);
    pthread_mutex_unlock(&ev->mutex);
    return used ? out : " none";
}

void events_wait(events *ev, rlock_event_type type, int n, int limit_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + limit_ms % 1000 * (int64_t)1000000;
    until.tv_sec += limit_ms / 1000 + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    int seen, err = 0;
    char all[200];
    pthread_mutex_lock(&ev->mutex);
    while ((seen = count_locked(ev, type)) < n && err == 0)
        err = pthread_cond_timedwait(&ev->changed, &ev->mutex, &until);
    pthread_mutex_unlock(&ev->mutex);
    if (seen < n)
        FAIL("%d events of type %d within %d ms, expected %d; in all, the "
             "newest first:%s",
             seen, (int)type, limit_ms, n, told(ev, all, sizeof all));
}

/* Records are never changed, so they may be read after unlocking. */
static const record *last_record(events *ev, rlock_event_type type)
{
    pthread_mutex_lock(&ev->mutex);
    record *r = ev->newest;
    while (r && r->event.type != type)
        r = r->older;
    pthread_mutex_unlock(&ev->mutex);
    return r;
}

bool events_last(events *ev, rlock_event_type type, rlock_event *out)
{
    const record *r = last_record(ev, type);
    if (r)
        *out = r->event;
    return r != NULL;
}

int64_t events_time(events *ev, rlock_event_type type)
{
    const record *r = last_record(ev, type);
    return r ? r->at_ms : 0;
}

const char *events_message(events *ev, rlock_event_type type)
{
    const record *r = last_record(ev, type);
    return r ? r->event.message : "";
}
