/* Owners: threads that draw one verb after the other, until they end. */
#include <stdio.h>
#include <string.h>

#include "judge.h"

owner owners[OWNERS_MAX];
static int alive;

static int64_t weight_of(const owner *o, const verb *v)
{
    if (v->needs_hold ? o->taken_n == 0 : v->needs_none && o->taken_n > 0)
        return 0;
    return v->weight ? *v->weight : 10;
}

static const verb *draw_verb(owner *o)
{
    int64_t all = 0;
    for (int i = 0; i < verbs_n; i++)
        all += weight_of(o, &verbs[i]);
    int64_t which = chance_below(&o->dice, all);
    for (int i = 0; i < verbs_n; i++) {
        which -= weight_of(o, &verbs[i]);
        if (which < 0)
            return &verbs[i];
    }
    return &verbs[0];
}

static void *live(void *arg);

static void begin_thread(owner *o)
{
    o->generation++;
    program_thread(live, o);
}

/* True: the thread is to end here, and another one goes on. */
static bool ends_early(owner *o)
{
    return o->steps > 0 && !o->g->closing_at &&
           chance_below(&o->dice, 2000) < cfg.end_pct;
}

static void end_life(owner *o)
{
    for (int i = 0; i < locks_n; i++) {
        rlock_free(o->own[i]);
        o->own[i] = NULL;
    }
    o->lives = false;
    alive--;
    wake_waiters(&alive, true);
}

/* What it waits for it may be granted, and lose, and nobody is told but by an
   event. */
void owner_note_wait(owner *o, bool is_abandoned)
{
    const lock *l = &locks[o->waits->lock];
    for (int i = 0; i < l->n; i++) {
        hold *h = need_memory(sizeof *h);
        *h = (hold){.next = holds[l->member[i]],
                    .bunch = need_memory(sizeof *h->bunch),
                    .o = o,
                    .g = o->g,
                    .thing = l->member[i],
                    .thread = o->made_by,
                    .asked = o->waits->began,
                    .ended = w.now,
                    .is_abandoned = is_abandoned};
        memcpy(h->label, o->label, sizeof h->label);
        holds[h->thing] = h;
    }
}

void owners_died(const program *g)
{
    for (int i = 0; i < OWNERS_MAX; i++) {
        owner *o = &owners[i];
        if (o->g != g)
            continue;
        alive -= o->lives;
        o->lives = false;
        if (o->waits)
            owner_note_wait(o, false);
        o->waits = NULL;
    }
    wake_waiters(&alive, true);
}

static void *live(void *arg)
{
    owner *o = arg;
    char name[20];
    snprintf(name, sizeof name, "owner%d.%d", o->id, o->generation);
    pthread_setname_np(pthread_self(), name);
    running->is_library = false;
    while (o->steps-- > 0 && !o->g->closing_at) {
        draw_verb(o)->act(o);
        faults_strike();
        if (ends_early(o)) {
            owner_abandon(o);
            begin_thread(o);
            return NULL;
        }
    }
    if (cfg.end_pct > 0 && chance_below(&o->dice, 2))
        owner_abandon(o);
    owner_unlock_all(o);
    while (o->g->closing_at && !o->g->is_closed)
        block(o->g, "the end of a close", NEVER); /* and so abandons nothing */
    end_life(o);
    return NULL;
}

void owners_start(void)
{
    for (int i = 0; i < cfg.owners; i++) {
        owner *o = &owners[i];
        o->id = i;
        o->g = &programs[i % cfg.processes];
        o->steps = cfg.steps;
        chance_init(&o->dice, chance_next(&w.dice));
        running->p = &o->g->p;
        alive++;
        o->lives = true;
        begin_thread(o);
    }
}

void owners_join(void)
{
    while (alive > 0)
        block(&alive, "the end of owners", NEVER);
}
