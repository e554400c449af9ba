/*
 * What a proxy looks for in the requests, and what it has seen of them. No
 * thread and no lock of its own: the proxy's mutex is held.
 */
#ifndef TEST_SUPPORT_RULES_H
#define TEST_SUPPORT_RULES_H

#include <pthread.h>

#include "proxy.h"

#define HALF SIZE_MAX

typedef struct seen {
    char *data;
    size_t len;
} seen;

typedef struct rules {
    char *needle; /* of the rule; NULL when none waits for its request */
    char *answer;
    proxy_action action;
    size_t bytes; /* of the reply that PROXY_MID_REPLY passes, or HALF */
    int id;       /* of the rule that was set last */
    int left;     /* requests that must still match, with the one it is about;
                     or PROXY_EVERY */
    bool fired;
    seen *log;
    size_t log_len, log_room;
    int awaited; /* let go of by proxy_let_go(), and not answered yet */
    pthread_cond_t settled; /* nothing is awaited any more */
} rules;

void rules_init(rules *rs);
void rules_fini(rules *rs);
void rules_set(rules *rs, const char *needle, int nth, proxy_action action,
               const char *answer);
/* The two parts of an action. */
proxy_action rules_point(int action);
proxy_action rules_way(int action);
/* Notes a request. Is it the one that the rule is about? Then the rule is used
   up, unless it is about every one, and its action and answer are to be
   applied. */
bool rules_strike(rules *rs, const char *p, size_t len);
/* The action of the rule with this id has taken place. */
void rules_fire(rules *rs, int id);
int rules_count(const rules *rs, const char *needle);
/* Counts from 0 again. */
void rules_forget(rules *rs);
/* One that was awaited is so no more. */
void rules_settle(rules *rs);

#endif
