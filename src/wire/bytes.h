/*
 * Bytes on their way to a server: they grow at one end and are sent from the
 * other. Commands are written here in Redis' protocol, piece by piece, without
 * a copy in between. Memory that cannot be had is noted; who has written a
 * command looks at the end, and takes back all of it.
 */
#ifndef RL_WIRE_BYTES_H
#define RL_WIRE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rl_bytes {
    char *at;
    size_t begin; /* what is before has been sent */
    size_t end, room;
    bool lacking; /* memory, for something that should have been added */
} rl_bytes;

void rl_bytes_fini(rl_bytes *b);

/* Cut back to end; whatever was lacking before is forgotten. */
void rl_bytes_cut(rl_bytes *b, size_t end);
void rl_bytes_sent(rl_bytes *b, size_t n);

/* What is empty and large gives its memory back. */
void rl_bytes_trim(rl_bytes *b);

static inline size_t rl_bytes_left(const rl_bytes *b)
{
    return b->end - b->begin;
}

/* Bytes that are a command already, or several. */
void rl_put_raw(rl_bytes *b, const void *bytes, size_t len);

/* "*3": what follows is a command of n words. */
void rl_put_array(rl_bytes *b, size_t n);

/* One word. */
void rl_put_bytes(rl_bytes *b, const void *bytes, size_t len);
void rl_put_text(rl_bytes *b, const char *text);
void rl_put_number(rl_bytes *b, int64_t number);

/* One word whose bytes the caller writes; NULL: memory is lacking. */
char *rl_put_word(rl_bytes *b, size_t len);

/* Writes it in decimal, without a NUL; returns where that ends, 20 further at
   most. */
char *rl_write_digits(char *at, uint64_t n);

#endif
