/*
 * Places where a tracer of the system can look in (USDT), if the library was
 * built with <sys/sdt.h>: a nop each, and a note in the file that says where it
 * is, and where its arguments are then. These are numbers and addresses that are
 * at hand: nothing is called to get them. What each tells: doc/probes.md.
 */
#ifndef RL_BASE_PROBE_H
#define RL_BASE_PROBE_H

#ifdef RL_HAS_SDT
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>
#define RL_PROBE(...) STAP_PROBEV(rlock, __VA_ARGS__)
#else
#define RL_PROBE(...) ((void)0)
#endif

#endif
