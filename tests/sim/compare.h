/* What the comparison of the store with a real server shares. */
#ifndef SIM_COMPARE_H
#define SIM_COMPARE_H

#include "chance.h"
#include "store.h"

/* A redis-server whose clock stands where it is put. */
typedef struct real {
    char dir[64];
    int pid, fd, listener; /* listener: a connection that is subscribed */
    volatile long long *clock_us;
    text heard; /* on the subscribed channels */
} real;

void real_start(real *r);
void real_stop(real *r);
void real_ask(real *r, const word *argv, size_t n, text *reply);

/* A random command; its words live in the array. */
#define WORD_SIZE 160

typedef struct command_line {
    size_t n;
    word argv[WORDS_MAX];
    char room[WORDS_MAX][WORD_SIZE];
} command_line;

#define BELLS       4 /* of which the even ones are listened to */
#define BELL_FORMAT "rlock_bell:%d"

void random_command(chance *c, command_line *to);
void say_word(command_line *to, const char *text);

/* Words of the scripts' calls: mostly good ones. */
#define HOLDERS 3
#define LINE    7
#define WANTS   8
#define PERMITS 9
const char *holder(int i);
void say_number(command_line *to, long long n);
void say_one(chance *c, command_line *to, const char *const *of, int count);
void say_lease(chance *c, command_line *to);
void say_bell(chance *c, command_line *to);
void say_key(command_line *to, const char *name, int which, int whose);

/* Of a semaphore (compare_permits.c): argv[1] is the script. */
void call_permit(chance *c, command_line *to, const char *name);

/* The keys that random commands know; NULL: there are no more. */
const char *known_key(size_t i);

#endif
