/*
 * What the fuzz targets share: ways to cut the input up, and to state what has
 * to hold whatever the input is.
 *
 * An input is read from its beginning; at its end there are only zeros, so
 * that every input has a meaning, and a short one a simple meaning.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libFuzzer's entry points: once at the start, and for each input. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the input is, this holds. */
#define MUST(cond)                                                             \
    do {                                                                       \
        if (!(cond))                                                           \
            fuzz_broken(__FILE__, __LINE__, #cond);                            \
    } while (0)

_Noreturn void fuzz_broken(const char *file, int line, const char *cond);

typedef struct feed {
    const uint8_t *at;
    size_t left;
} feed;

unsigned feed_byte(feed *f);

/* 0 to limit - 1. */
unsigned feed_choice(feed *f, unsigned limit);

/* The next len bytes, or what there is; their number. */
size_t feed_bytes(feed *f, size_t len, const uint8_t **bytes);

/* The same, headed by a byte that says how many, as a new C string. */
char *feed_text(feed *f);

/* Small and large numbers, and those where arithmetic ends. */
int64_t feed_number(feed *f);

/* A piece of the input, headed by two bytes that say how long it is. */
feed feed_part(feed *f);

#endif
