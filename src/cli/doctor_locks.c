/* What threatens the locks that are held now: no end, long holds, circles. */
#include <stdio.h>
#include <string.h>

#include "doctor.h"

#define FEW 3 /* are named, the others counted */

/* A lock's own, its token's, its queue's, who is in it, and what was given up. */
#define KEYS_OF_ONE 5

/* Whose are so many keys that end, and are no lock's? A cache's. */
#define MANY_KEYS 1000

/* Names of locks, as a finding tells them. */
typedef struct names {
    char text[300];
    size_t n, len;
} names;

typedef struct locks {
    int64_t long_ms;
    size_t all, held;
    names endless, aged, circling;
} locks;

static void note(names *s, const char *name, size_t len)
{
    look_text shown;
    cli_printable_n(shown.text, 80, name, len);
    if (s->n++ < FEW)
        s->len += (size_t)snprintf(s->text + s->len, sizeof s->text - s->len,
                                   "%s'%s'", s->n > 1 ? ", " : "", shown.text);
}

static void find(doctor *d, const char *server, const char *check,
                 doctor_verdict v, const names *s, const char *remedy,
                 const char *none)
{
    if (s->n == 0)
        doctor_find(d, server, DOCTOR_OK, check, NULL, "%s", none);
    else if (s->n <= FEW)
        doctor_find(d, server, v, check, remedy, "%s", s->text);
    else
        doctor_find(d, server, v, check, remedy, "%s and %zu more", s->text,
                    s->n - FEW);
}

static bool note_lock(const rlock_lock_info *l, void *arg)
{
    locks *x = arg;
    x->all++;
    if (l->n_holders == 0)
        return true;
    x->held++;
    if (l->ttl_ms == -1)
        note(&x->endless, l->name, l->name_len);
    if (x->long_ms >= 0 && l->held_ms > x->long_ms)
        note(&x->aged, l->name, l->name_len);
    return true;
}

static void note_wait(const rlock_wait *w, void *arg)
{
    locks *x = arg;
    if (w->circle)
        note(&x->circling, w->name, w->name_len);
}

/* With a cache in the same database, that is emptied, or evicts. */
static void find_sharing(doctor *d, const char *server, size_t locks)
{
    const char *remedy = "a server for locks alone: who empties or bounds a "
                         "cache drops them, too";
    int64_t others = d->volatile_keys - (int64_t)locks * KEYS_OF_ONE;
    if (d->keys_untold)
        doctor_find(d, server, DOCTOR_UNKNOWN, "sharing", "let the user INFO",
                    "not told");
    else if (d->evicted > 0)
        doctor_find(d, server, d->evicts ? DOCTOR_BAD : DOCTOR_WARN, "sharing",
                    remedy, "%lld keys were evicted", (long long)d->evicted);
    else
        doctor_find(d, server, others >= MANY_KEYS ? DOCTOR_WARN : DOCTOR_OK,
                    "sharing", remedy, "keys with a TTL, not of locks: %lld",
                    (long long)(others > 0 ? others : 0));
}

/* Of a server that cannot be asked that is found already. */
static int untold(doctor *d, const char *server)
{
    rlock_status status = rlock_last_error()->status;
    if (strstr(rlock_last_error()->message, "CLUSTERDOWN "))
        return 0;
    if (status == RLOCK_ESERVER)
        doctor_find(d, server, DOCTOR_UNKNOWN, "locks",
                    "let the user SCAN and ZCARD, and the keys of locks",
                    "not told");
    return status == RLOCK_ESERVER || status == RLOCK_EIO ? 0 : look_failed();
}

int doctor_look_at_locks(doctor *d, rlock_client *cl, const char *server)
{
    locks x = {.long_ms = d->long_ms};
    char held[60];
    if (rlock_scan(cl, NULL, RLOCK_SCAN_IDLE, note_lock, &x) != RLOCK_OK ||
        rlock_waits_for(cl, note_wait, &x) != RLOCK_OK)
        return untold(d, server);
    snprintf(held, sizeof held, "%zu held, each with an end", x.held);
    find(d, server, "leases", DOCTOR_WARN, &x.endless,
         "rlock break, if the holder is dead: nothing else ends it", held);
    if (x.long_ms >= 0)
        find(d, server, "long holds", DOCTOR_WARN, &x.aged,
             "rlock show, and look whether the holder goes on", "none");
    find_sharing(d, server, x.all);
    find(d, server, "circles", DOCTOR_BAD, &x.circling,
         "rlock waits: they wait for each other for ever", "none");
    return 0;
}
