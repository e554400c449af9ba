/* The real scripts of lua/, as the library has them, under a real Lua 5.1. */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include "store.h"

/*
 * Runs a script: its body, with so many of the words as keys. The reply is
 * added to *out. A body is compiled once.
 */
void script_run(store *s, const word *body, const word *argv, size_t n,
                size_t keys, text *out);

/* The library's script of that SHA1, by its place in rl_scripts; or -1. */
int script_by_sha1(const word *sha1);

/* By its body; -1: it is none of the library's. */
int script_by_body(const word *body);

/* The same, of one of the library's. */
void script_call(store *s, int script, const word *argv, size_t n, size_t keys,
                 text *out);

void script_end(void);

#endif
