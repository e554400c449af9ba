/* Something that listens where a client looks for a server. */
#ifndef TEST_SUPPORT_FAKE_H
#define TEST_SUPPORT_FAKE_H

#include "test.h"

/*
 * A listener that takes one connection after the other. It sends the greeting,
 * and answers each request, or piece of what is none, with one answer after the
 * other; then it says nothing.
 */
typedef struct fake {
    const char *greeting;       /* NULL: none */
    const char *const *answers; /* up to a NULL; NULL: none */
    int delay_ms;               /* before each answer */
    bool hangs_up;              /* at once */
    int listener, port;
    test_thread *thread;
} fake;

/* Its port is known then; what f has is to stay until fake_stop(). */
void fake_start(fake *f);
void fake_stop(fake *f);

/*
 * A port whose listener has all the connections that it has room for: to a SYN
 * nobody answers any more.
 */
typedef struct black_hole {
    int listener, last, port;
} black_hole;

black_hole black_hole_open(void);
void black_hole_close(black_hole *b);

/* What a server answers to the PING of a new connection. */
#define ECHO "$5\r\nrlock\r\n"
/* The answers of a fake. */
#define ANSWERS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
