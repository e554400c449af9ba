/* What happens when: a heap by time, and among equals by chance. */
#include "world.h"

#define EVENTS_MAX 65536

static event *heap[EVENTS_MAX + 1];
static size_t heap_n;

static bool is_before(const event *a, const event *b)
{
    return a->at != b->at ? a->at < b->at : a->tie < b->tie;
}

static void put(event *e, size_t i)
{
    heap[i] = e;
    e->pos = i;
}

static void rise(event *e, size_t i)
{
    for (; i > 1 && is_before(e, heap[i / 2]); i /= 2)
        put(heap[i / 2], i);
    put(e, i);
}

static void sink(event *e, size_t i)
{
    for (size_t k; (k = 2 * i) <= heap_n; i = k) {
        if (k < heap_n && is_before(heap[k + 1], heap[k]))
            k++;
        if (!is_before(heap[k], e))
            break;
        put(heap[k], i);
    }
    put(e, i);
}

void event_clear(event *e)
{
    size_t i = e->pos;
    if (!i)
        return;
    e->pos = 0;
    event *last = heap[heap_n--];
    if (last == e)
        return;
    if (i > 1 && is_before(last, heap[i / 2]))
        rise(last, i);
    else
        sink(last, i);
}

void event_set(event *e, int64_t at)
{
    event_clear(e);
    e->at = at;
    e->tie = chance_next(&w.dice);
    if (heap_n == EVENTS_MAX)
        finding("the world has too many events");
    rise(e, ++heap_n);
}

event *event_next(void)
{
    event *first = heap_n ? heap[1] : NULL;
    if (first)
        event_clear(first);
    return first;
}

bool event_is_due(void)
{
    return heap_n > 0 && heap[1]->at <= w.now;
}
