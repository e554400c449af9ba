#include "metronome.h"

#include <string.h>
#include <time.h>

enum { BEAT_US = 5000, NOTABLE_US = 5000 };

static void note_stall(const metronome *m, int64_t due_us, int64_t now_us)
{
    note n = {now_us, due_us, now_us, 0, NOTE_STALL, 0};
    history_note(m->h, &n);
}

static void *run(void *arg)
{
    metronome *m = arg;
    shim_spare_me(true);
    while (!atomic_load(&m->over)) {
        int64_t due_us = attack_now_us() + BEAT_US;
        struct timespec ts = {due_us / 1000000, due_us % 1000000 * 1000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
            ; /* a signal */
        int64_t now_us = attack_now_us();
        if (now_us - due_us > NOTABLE_US)
            note_stall(m, due_us, now_us);
    }
    return NULL;
}

void metronome_start(metronome *m, history *h)
{
    *m = (metronome){.h = h};
    int err = pthread_create(&m->thread, NULL, run, m);
    if (err)
        attack_die("cannot start a thread: %s", strerror(err));
}

void metronome_stop(metronome *m)
{
    atomic_store(&m->over, true);
    pthread_join(m->thread, NULL);
}
