/*
 * Owners: threads of the program, each with a random program of its own. The
 * verbs are the library's own, on a stack of the owner's (thread.c).
 */
#ifndef SIM_OWNER_H
#define SIM_OWNER_H

#include "thread.h"
#include "world.h"

/* What a judge keeps of each hold that was ever granted. */
typedef struct account {
    char uuid[RL_UUID_LEN + 1];
    size_t name;
    uint64_t token;
    unsigned harm;     /* of the server, when it was granted there */
    unsigned in_union; /* those with one number are lost as one; 0: alone */
    unsigned losses_told, abandons_told;
    bool abandoned; /* its thread has ended */
    bool untold;    /* whom the loss would be told is closed */
    bool lost;      /* it was, for all that is known at its end */
    rl_loss why;
} account;

/* An owner's hold of a name. */
typedef struct holding {
    rl_hold *hold; /* referenced; NULL: none. Of a Red lock, the first node's */
    rl_group *group; /* of a Red lock, counted */
    size_t at;       /* whose client has that hold */
    size_t account;  /* its number */
    int count;
    bool unsure;    /* what the server counts is not known */
    bool releasing; /* it is not believed in any more */
    bool over;      /* it was not believed in before */
    unsigned harm;  /* of the server, when it was granted there */
    int64_t granted_us;
    int64_t past_us; /* true time at which it was first seen past its end */
} holding;

typedef enum verb {
    NOTHING,
    ACQUIRE,
    REENTER,
    EXTEND,
    UNLOCK,
    FORCE,
    INSPECT
} verb;

#define MULTIS_MAX 2

/* Of an owner whose clock drifts: what a server last had for it. */
typedef struct lease {
    char uuid[RL_UUID_LEN];
    int64_t until_ms; /* by the server's clock */
} lease;

/* What another thread of its process has handed over to an owner. */
typedef struct handed {
    char uuid[RL_UUID_LEN];
    int64_t since_us; /* true time; 0: nothing, or it has been told */
} handed;

/* Of an owner. */
typedef struct handle {
    rlock *lk; /* NULL: it has not been made yet */
    bool is_multi;
    unsigned names; /* a bit for each; of a Multi lock, its members */
    int levels;     /* acquired and not unlocked again */
} handle;

/* What the parts of an operation are asked to do, for when it is over. */
typedef struct deeds {
    size_t n;
    struct deed {
        size_t name; /* NAMES_MAX: none of those that are judged */
        rl_verb verb;
        int level;
    } of[RL_PARTS_MAX];
} deeds;

struct owner {
    runner runner;
    process *p;
    rl_owner self;
    unsigned number; /* in the whole world */
    holding holding[NAMES_MAX];
    unsigned token_harm[NAMES_MAX]; /* the same, at the first of a try */
    unsigned harm[NAMES_MAX];  /* of the server, at the latest grant there; of
                                  a Red lock at the first of a try */
    uint64_t tried[NAMES_MAX]; /* the hash of the holder id of that one */
    lease lease[SERVERS_MAX][NAMES_MAX];
    handed handed[NAMES_MAX];
    account *accounts;
    size_t count, room;
    bool is_done;
    bool ends;       /* its thread does, as soon as it holds something */
    int64_t next_us; /* local: when the program goes on */
    thread thread;
    handle one[NAMES_MAX], multi[MULTIS_MAX];
    unsigned unions;
    int64_t multi_over_us; /* local: when its last call of one ended */

    /* The verb that is under way: */
    verb verb;
    size_t name;    /* of several, the first */
    unsigned names; /* a bit for each */
    handle *now;
    bool is_disordered; /* it waits with what comes later in the order */
    const rl_acquire *acquiring; /* the wait that is under way; NULL: none */
    int64_t began_us, wait_ms, lease_ms;
    rlock_status status;
};

owner *owner_open(process *p, unsigned index);
void owner_close(owner *o);
void owner_dies(owner *o);

/* ending.c: its thread ends, and another takes its place. */
void owner_ends(owner *o);
void owner_forgets(owner *o, size_t name);
owner *owner_by_serial(const world *w, uint64_t serial);
bool owner_is_waiting(const owner *o, size_t name);
const char *owner_names(const owner *o, unsigned names); /* for messages */

bool owner_is_closed(const owner *o, size_t name);

/* A waiter of the running thread has begun to wait. */
void owner_contends(client *c);

/* Is the verb that is under way about it? */
static inline bool owner_is_about(const owner *o, size_t name)
{
    return o->verb != NOTHING && o->names >> name & 1;
}

/* The verbs. Each ends in owner_is_told(). */
void verb_acquire(owner *o, handle *of, int64_t wait_ms, int64_t lease_ms);
void verb_extend(owner *o, handle *of, int64_t lease_ms);
void verb_unlock(owner *o, handle *of);
void verb_force(owner *o, handle *of);
void verb_inspect(owner *o, handle *of);
void verb_look(owner *o, const handle *of);
void owner_cancel(owner *o, size_t name);

void handles_open(owner *o);
void handles_close(owner *o);
/* Anew, of some names. False: a client of theirs is closed. */
bool handle_make_multi(owner *o, handle *m);

/* Of a Red lock that has been granted: what the judges keep. */
void red_keep(owner *o, size_t name);
bool red_believes(owner *o, size_t name);

/* Before an operation of a verb of the library's own, and after it. */
void owner_note_deeds(const owner *o, const rl_op *op, deeds *d);
void owner_judge_deeds(owner *o, const rl_op *op, const deeds *d);

void owner_is_told(owner *o, rlock_status status);

/* The client and target by which an owner has a name. */
client *owner_client(const owner *o, size_t name);
const rl_target *owner_target(const owner *o, size_t name);
bool owner_counts_here(const owner *o, size_t name); /* local_levels */
static inline server *lock_server(world *w, size_t name)
{
    return &w->server[w->lock[name].server];
}

#endif
