/*
 * The judges. They know what the API said, and the servers' stores; never what
 * the library has inside. Who acts (verbs.c, program.c) tells them by the
 * functions below; each judge has a place in the table of judges.c, and hears
 * what it has a function for.
 */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "program.h"

/*
 * Holds that one acquire has taken: of a Multi lock they are lost as one, and
 * that is told once.
 */
typedef struct bunch {
    int holds, abandons; /* abandons: how often that was told */
    /* Of its losses, at the end: which it may be, from 1, and until which search
       that is asked no more. */
    int loss, looked_at;
} bunch;

struct hold {
    hold *next; /* of the thing, the last first */
    bunch *bunch;
    owner *o;
    program *g;
    int thing, thread; /* the thread's id */
    char label[24];    /* of an owner that is no thread */
    uint64_t token; /* 0: it was lost before that could be asked, or has none */
    int levels;
    int64_t asked;     /* when the acquire began */
    int64_t from, to;  /* for so long it was believed in, at least */
    int64_t ended;     /* its owner is done with it; 0: not yet */
    int64_t deadline;  /* the latest that was told */
    int64_t ends;      /* the latest that was asked for; 0: nothing was yet */
    int64_t unlocking; /* since when its last level is being undone; 0: not */
    int64_t lost_told; /* when an event said so; 0: none did */
    bool is_sure;      /* it was once asked for, and there */
    bool is_gone;      /* it is known to be lost */
    bool is_abandoned; /* its thread has ended */
    bool is_renewed;   /* by the watchdog; otherwise it has an end */
    bool was_extended; /* by a call of which the outcome is unknown, too */
};

extern hold *holds[THINGS_MAX];

/* Does no hold of it have a token? */
bool judge_is_tokenless(int thing);

/* A call of the API that asks a server. */
struct act {
    const char *verb;
    owner *o;
    int lock;
    bool is_nested;
    bool is_started;           /* and called back, when the loop has time */
    int64_t wait_ms, lease_ms; /* an acquire's; a wait of 0 otherwise */
    int64_t began, lasted;
    int64_t took; /* without what callbacks took */
    rlock_status status;
};

/* verbs.c: acts, and what they mean for an owner's holds. */
act act_begin(owner *o, const char *verb, int lock);
void act_end(act *a, rlock_status s);
void look_at_all(owner *o);
void note_taken(owner *o, const act *a);
void note_lease(const act *a);
void drop_level(owner *o, int thing, rlock_status s);
void expect_nested(const act *a);
void expect_extended(const act *a);
void note_extended(const act *a);

/* What an owner was told of a hold without asking a server. */
typedef struct look {
    int64_t at; /* before the first call */
    int64_t valid_ms;
    bool is_held;
    uint64_t token;
    int count;
} look;

/* A script that a server executes: words are its keys, then its arguments. */
typedef struct call {
    server *s;
    const char *script;
    const word *words;
    size_t n, keys;
} call;

typedef struct judge {
    const char *name;
    void (*called)(const act *a);
    void (*taken)(hold *h);
    void (*looked)(hold *h, const look *l);
    void (*told)(program *g, const rlock_event *e);
    void (*closed)(program *g, int client, rlock_status s);
    void (*executing)(const call *c);
    void (*executed)(const call *c, const text *reply);
    void (*rang)(server *s, const word *bell, const word *name); /* one hears */
    void (*ended)(void); /* all is freed, and all leases have run out */
} judge;

extern const judge judge_holding, judge_tokens, judge_losses, judge_calls,
    judge_rest, judge_watch, judge_work, judge_latches, judge_semaphores;

void judge_called(const act *a);
void judge_taken(hold *h);
void judge_looked(hold *h, const look *l);
void judge_told(program *g, const rlock_event *e);
void judge_closed(program *g, int client, rlock_status s);
void judge_executing(const call *c);
void judge_executed(const call *c, const text *reply);
void judge_rang(server *s, const word *bell, const word *name);
void judge_ended(void);

/*
 * Something has happened that a lock is not proof against: data are lost, or
 * it was freed by force. Holds that were there between these times may be
 * believed in although others have the thing; tokens tell, and nothing else.
 */
void judge_shake(unsigned things, int64_t from, int64_t to);
void judge_shake_server(int server); /* it has lost its data, just now */
bool is_shaken(const hold *h);

/* The same of what is believed now: nobody may rely for longer than a lease on
   what was said before data were lost. */
bool is_still_shaken(const hold *h);

/* What ids of its owner begin with: host:pid:tid: or host:pid:tid/label: */
int holder_prefix(const hold *h, char *at, size_t room);

/* host:pid:tid:... of the hold's owner; of its process, if locks are passed on
   from one to the next without a call. */
bool is_holder(const hold *h, const text *id);
bool was_shaken(int thing, int64_t since);

/* Has a server of the thing lost its data since? One node of a Red lock may,
   and the lock is none the worse; but that much fewer nodes bear it out. */
bool is_thinned(const hold *h);

/*
 * The servers in office for these things are others since then, or have other
 * data: who has a hold that they lack has to be told within a second and that
 * much more (judge_watch.c).
 */
void judge_replaced(unsigned things, int64_t since, int64_t grace);
bool judge_was_replaced(int thing, int64_t since);

/* Somebody who is no client of ours has the lock of this name from now on, or
   gives it back, and says so in Redisson's channel. */
void judge_foreign(int server, const char *name, bool has);
/* Connections are, but that some messages may be late (tail_ppm), and nobody
   forces locks open. */
bool judge_is_sound(void);
bool judge_trouble_since(int64_t when);
void judge_trouble(void); /* something has gone wrong, just now */
void judge_trouble_until(int64_t when);
unsigned judge_things_at(int server);
bool judge_backs(server *s, const hold *h);
/* The server has who holds it; a timestamp says until when only. */
bool judge_names_holder(const hold *h);
bool judge_was_told(const hold *h); /* of a loss, or of what came with it */
/* Is there an on_event for what becomes of it? Not if some that would tell of
   its lock, or of what it was taken with, are missing. */
bool judge_is_heard(const hold *h);

/* It is told that there is no memory, and some was refused to its process
   since; or just before, when the connection was begun that calls share. */
bool judge_excuses(const program *g, rlock_status s, int64_t since);

/* What threads that are late, or callbacks, may add to a bound. */
int64_t judge_slack(void);

/* Each callback of the program may take its time, of others too. */
int64_t judge_callbacks(void);

/* Judge 6, of a call that is no act: callbacks may have run meanwhile. */
void judge_took(const char *verb, const char *name, int64_t wait_ms,
                int64_t took);

/* --- usage.c -------------------------------------------------------------- */

/* Who has something that several may have at a time, as they were told. */
typedef struct usage {
    const char *name;
    int holds[OWNERS_MAX], holds_n; /* of each; of all */
    int64_t lease_ms[OWNERS_MAX];   /* the longest that each has or asks for */
    int64_t until; /* what was given up, or left, is had no longer */
} usage;

void usage_asks(usage *u, const owner *o, int64_t lease_ms);
/* What it began to ask then; in calm worlds its wait is judged. */
void usage_answered(usage *u, const owner *o, int64_t began, rlock_status s);
void usage_ends(usage *u, const owner *o, rlock_status s); /* of giving it up */
void usage_died(usage *u, const program *g);

#endif
