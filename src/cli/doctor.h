/* The verb `doctor`: what it finds at a server, check by check. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "look.h"

typedef enum doctor_verdict {
    DOCTOR_OK,
    DOCTOR_UNKNOWN, /* it may not be asked, or does not say: never well */
    DOCTOR_WARN,
    DOCTOR_BAD,
    DOCTOR_VERDICTS
} doctor_verdict;

typedef struct doctor {
    const cli_options *o;
    bool several;    /* servers: a Red lock */
    int64_t long_ms; /* holds that are older are found; below zero: none is */
    size_t found[DOCTOR_VERDICTS];
    size_t asked; /* servers that answered */
    /* Clocks of masters against this machine's; how many do not tell. */
    size_t clocks, clockless;
    int64_t slowest_us, fastest_us;
    /* Of the masters of the client that is looked at. */
    int64_t volatile_keys, evicted;
    bool keys_untold, evicts;
    char error[sizeof((rlock_error *)0)->message]; /* of one that did not */
    cli_table table;
} doctor;

/* Notes a finding: of which server, what was looked at, and how that is; and
   what is to be done, unless it is well. */
void doctor_find(doctor *d, const char *server, doctor_verdict v,
                 const char *check, const char *remedy, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* One that cannot be asked. */
void doctor_unreached(doctor *d, const char *server, doctor_verdict v,
                      const char *error);

/* All checks of one server; and then of what they are to each other. */
void doctor_examine(doctor *d, const rlock_server_info *s);
void doctor_compare(doctor *d);
/* Those of the locks that a client's servers have; 0, or the exit status. */
int doctor_look_at_locks(doctor *d, rlock_client *cl, const char *server);

#endif
