/*
 * Called by every thread of the program. `mutex` guards which muxes there are
 * and who has a port where; it is not held while a connection is opened, given
 * back or closed.
 *
 * A few threads are best off with a mux for each, since nobody has to wake
 * another one then; many do not mind how few there are, as long as one's
 * reading overlaps with the other's. Nobody opens a connection while another
 * one is being opened: the others take ports at the mux that is there, or, if
 * there is none, wait and get what came of it, a refusal too. So a server that
 * is down is tried once, not once for each thread.
 *
 * Somebody who needs a connection for himself, and waits for a place, is not
 * kept waiting by threads that come and go at a mux: as long as he waits,
 * newcomers stand in line behind him.
 *
 * A thread that is alone leaves its mux and comes back to it for each call, and
 * borrows nothing for that.
 *
 * A mux that is spent takes no one more, and gives its place back, so that
 * whoever asks again does so on another connection, while those that wait for
 * replies get them.
 */
#include "route/mux_set.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define MUXES_MAX 4

/* A mux that had more than that is not kept. */
#define PORTS_KEPT 32

void rl_mux_set_init(rl_mux_set *p)
{
    rl_mutex_init(&p->mutex, RL_RANK_MUX_SET);
    rl_cond_init(&p->opened);
    rl_list_init(&p->open);
    rl_list_init(&p->spare);
    p->n = 0;
    atomic_init(&p->crowd, 0);
    p->opening = false;
    p->openings = 0;
}

static rl_mux *mux_of(rl_link *k)
{
    return RL_CONTAINER(k, rl_mux, link);
}

/*
 * What a thread of the parent was using cannot be walked in a child. It is kept
 * where a search for leaks finds it.
 */
static void leave_behind(rl_mux_set *p)
{
    static _Atomic(rl_mux *) left_behind;
    if (!rl_mutex_was_free(&p->mutex))
        return;
    const rl_list *all[] = {&p->open, &p->spare};
    for (size_t i = 0; i < 2; i++)
        for (rl_link *k = rl_list_first(all[i]); k;
             k = rl_list_next(all[i], k)) {
            rl_signal_fini(&mux_of(k)->signal);
            mux_of(k)->next_left_behind =
                atomic_exchange(&left_behind, mux_of(k));
        }
}

/* It gives out no more ports. */
static void close_locked(rl_mux_set *p, rl_mux *h) RL_REQUIRES(&p->mutex)
{
    if (!rl_link_is_in(&h->link))
        return;
    rl_list_remove(&h->link);
    p->n--;
}

/* --- which mux ------------------------------------------------------------ */

/* The one with the fewest; NULL: there is none. */
static rl_mux *emptiest_locked(rl_mux_set *p) RL_REQUIRES(&p->mutex)
{
    rl_mux *best = NULL;
    for (rl_link *k = rl_list_first(&p->open); k; k = rl_list_next(&p->open, k))
        if (!best || mux_of(k)->users < best->users)
            best = mux_of(k);
    return best;
}

/* Nobody has a port there, and nobody will. */
static void give_up(rl_mux_set *p, rl_mux *h)
{
    bool placed = h->placed;
    rl_conn *c = rl_mux_detach(h);
    bool good = !atomic_load(&h->spent);
    if (good && h->port_count <= PORTS_KEPT) {
        rl_mutex_lock(&p->mutex);
        rl_list_add_first(&p->spare, &h->link);
        rl_mutex_unlock(&p->mutex);
    } else {
        rl_mux_free(h);
    }
    if (placed)
        rl_pool_give_back(p->pool, c);
    else
        rl_pool_close(p->pool, c);
}

/* Nobody has a port there. */
static bool is_at_rest(const rl_mux *h)
{
    return h->users == 0;
}

static void give_back_locked(rl_mux_set *p, rl_mux *h) RL_REQUIRES(&p->mutex)
{
    close_locked(p, h);
    rl_mutex_unlock(&p->mutex);
    give_up(p, h);
    rl_mutex_lock(&p->mutex);
}

static bool is_outdated(const rl_mux_set *p, const rl_mux *h, int64_t now_us)
{
    return is_at_rest(h) ? rl_pool_is_outdated(p->pool, h->conn, now_us)
                         : rl_conn_is_outdated(h->conn, now_us);
}

static void give_back_resting_locked(rl_mux_set *p) RL_REQUIRES(&p->mutex)
{
    rl_mux *h;
    while ((h = emptiest_locked(p)) != NULL && is_at_rest(h))
        give_back_locked(p, h);
}

/* Who has a port there already may go on. */
static void close_outdated_locked(rl_mux_set *p, int64_t now_us)
    RL_REQUIRES(&p->mutex)
{
    rl_link *next;
    for (rl_link *k = rl_list_first(&p->open); k; k = next) {
        rl_mux *h = mux_of(k);
        next = rl_list_next(&p->open, k);
        if (!is_outdated(p, h, now_us))
            continue;
        if (is_at_rest(h)) {
            give_back_locked(p, h);
            next = rl_list_first(&p->open); /* others were there meanwhile */
        } else {
            close_locked(p, h);
        }
    }
}

static bool is_fresh(const rl_mux_set *p, const rl_mux *h, int64_t now_us)
{
    return rl_pool_trusts(p->pool, h->conn, now_us) &&
           !rl_pool_is_outdated(p->pool, h->conn, now_us);
}

/* The pool looks at one that has rested before it hands it out. */
static rl_mux *find_fresh_locked(rl_mux_set *p, int64_t now_us)
    RL_REQUIRES(&p->mutex)
{
    rl_mux *h;
    close_outdated_locked(p, now_us);
    while ((h = emptiest_locked(p)) != NULL && is_at_rest(h) &&
           !is_fresh(p, h, now_us))
        give_back_locked(p, h);
    return h;
}

/* At which one; NULL: another connection is to be had first. */
static rl_mux *choose_locked(rl_mux_set *p, int64_t now_us)
    RL_REQUIRES(&p->mutex)
{
    rl_mux *h = find_fresh_locked(p, now_us);
    if (!h || is_at_rest(h))
        return h;
    if (rl_pool_is_wanted(p->pool))
        return NULL;
    bool more = p->n < MUXES_MAX && !p->opening && rl_pool_has_room(p->pool);
    return more ? NULL : h;
}

/* Off the list; NULL: out of memory. */
static rl_mux *take_spare_locked(rl_mux_set *p) RL_REQUIRES(&p->mutex)
{
    rl_link *k = rl_list_first(&p->spare);
    if (!k)
        return rl_mux_new(&p->crowd);
    rl_list_remove(k);
    return mux_of(k);
}

static void use_locked(rl_mux_set *p, rl_mux *h, rl_conn *c)
    RL_REQUIRES(&p->mutex)
{
    rl_mux_attach(h, c);
    h->users = 0;
    h->placed = true;
    rl_list_add_last(&p->open, &h->link);
    p->n++;
}

/* Gives the mutex up meanwhile. NULL: it failed, and *f says why. */
static rl_mux *open_locked(rl_mux_set *p, int64_t deadline_us, rl_fault *f)
    RL_REQUIRES(&p->mutex)
{
    rl_conn *c;
    rl_mux *h = take_spare_locked(p);
    if (!h) {
        rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
        return NULL;
    }
    f->status = RLOCK_OK;
    p->opening = true;
    p->opener = pthread_self();
    rl_mutex_unlock(&p->mutex);
    rlock_status s = rl_pool_borrow(p->pool, deadline_us, &c, f);
    rl_mutex_lock(&p->mutex);
    if (s == RLOCK_OK)
        use_locked(p, h, c);
    else
        rl_list_add_first(&p->spare, &h->link);
    p->opening = false;
    p->openings++;
    p->fault = *f;
    p->until_us = deadline_us;
    rl_cond_wake_all(&p->opened);
    return s == RLOCK_OK ? h : NULL;
}

/* He who had less time may only have run out of it. */
static bool ran_out_of_time(const rl_mux_set *p, int64_t deadline_us)
    RL_REQUIRES(&p->mutex)
{
    int err = p->fault.sys_errno;
    return (err == ETIMEDOUT || err == EBUSY) && p->until_us < deadline_us;
}

/* Somebody else opens one. False: that was in vain for this thread, too. */
static bool await_opening_locked(rl_mux_set *p, int64_t deadline_us,
                                 rl_fault *f) RL_REQUIRES(&p->mutex)
{
    unsigned before = p->openings;
    while (p->openings == before && rl_now_us() < deadline_us)
        rl_cond_wait_until(&p->opened, &p->mutex, deadline_us);
    if (p->openings == before) {
        rl_fault_set(f, RLOCK_EIO, ETIMEDOUT, "cannot connect: %s",
                     strerror(ETIMEDOUT));
        return false;
    }
    *f = p->fault;
    return f->status == RLOCK_OK || ran_out_of_time(p, deadline_us);
}

/* A callback that is told of the opening may want a lock itself. */
static bool somebody_else_opens(const rl_mux_set *p) RL_REQUIRES(&p->mutex)
{
    return p->opening && !pthread_equal(p->opener, pthread_self());
}

/* NULL: there is none, as *f says. */
static rl_mux *find_locked(rl_mux_set *p, int64_t deadline_us, int64_t now_us,
                           rl_fault *f) RL_REQUIRES(&p->mutex)
{
    rl_mux *h = choose_locked(p, now_us);
    while (!h && somebody_else_opens(p)) {
        if (!await_opening_locked(p, deadline_us, f))
            return NULL;
        /* Who stood in line for it did so for those behind him, too. */
        h = emptiest_locked(p);
    }
    if (!h)
        h = open_locked(p, deadline_us, f);
    return h ? h : emptiest_locked(p);
}

/* --- to leave ------------------------------------------------------------- */

/* Who comes to want its connection from now on asks for it, and so does who
   forsakes it. */
static bool may_keep(const rl_mux_set *p, const rl_mux *h)
{
    return rl_link_is_in(&h->link) && h->placed &&
           h->port_count <= PORTS_KEPT && !rl_pool_is_wanted(p->pool) &&
           !atomic_load(&h->conn->forsaken);
}

/* Of those at rest, who comes takes the one that was used last. */
static void move_to_front_locked(rl_mux_set *p, rl_mux *h)
    RL_REQUIRES(&p->mutex)
{
    rl_list_remove(&h->link);
    rl_list_add_first(&p->open, &h->link);
}

/* s: the thread's port; NULL: it got none. */
static void leave(rl_mux_set *p, rl_mux *h, rl_port *s)
{
    rl_mutex_lock(&p->mutex);
    bool good = !s || rl_port_leave(s);
    bool last = --h->users == 0;
    atomic_fetch_sub(&p->crowd, 1);
    bool unplace = !good && h->placed && !last;
    if (unplace)
        h->placed = false;
    bool kept = last && good && may_keep(p, h);
    if (kept)
        move_to_front_locked(p, h);
    else if (!good || last)
        close_locked(p, h);
    rl_mutex_unlock(&p->mutex);
    if (unplace)
        rl_pool_leave_place(p->pool);
    if (last && !kept)
        give_up(p, h);
}

/* --- both ------------------------------------------------------------------
 */

rl_port *rl_mux_set_join(rl_mux_set *p, int64_t deadline_us, int64_t now_us,
                         rl_fault *f)
{
    rl_port *s = NULL;
    rl_mutex_lock(&p->mutex);
    rl_mux *h = find_locked(p, deadline_us, now_us, f);
    if (h) {
        s = rl_mux_join(h);
        h->users++;
        atomic_fetch_add(&p->crowd, 1);
    }
    rl_mutex_unlock(&p->mutex);
    if (h && !s) {
        rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
        leave(p, h, NULL);
    }
    return s;
}

void rl_mux_set_leave(rl_mux_set *p, rl_port *s)
{
    leave(p, s->mux, s);
}

/* --- the end -------------------------------------------------------------- */

void rl_mux_set_give_back(void *set)
{
    rl_mux_set *p = set;
    rl_mutex_lock(&p->mutex);
    give_back_resting_locked(p);
    rl_mutex_unlock(&p->mutex);
}

void rl_mux_set_trim(rl_mux_set *p)
{
    rl_link *k;
    rl_mutex_lock(&p->mutex);
    give_back_resting_locked(p);
    while ((k = rl_list_first(&p->spare)) != NULL) {
        rl_list_remove(k);
        rl_mux_free(mux_of(k));
    }
    rl_mutex_unlock(&p->mutex);
}

void rl_mux_set_fini(rl_mux_set *p, bool forked)
{
    if (forked) {
        leave_behind(p);
        return;
    }
    rl_mux_set_trim(p);
    rl_cond_fini(&p->opened);
    rl_mutex_fini(&p->mutex);
}
