/*
 * What differs from system to system. Elsewhere than on Linux nobody is told of
 * its parent's death or adopts orphans, so less ends at once: run.md.
 */
#ifndef CLI_OS_H
#define CLI_OS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CLI_NEVER INT64_MAX

/* The lease clock, which runs on while the machine sleeps, as the library's. */
int64_t cli_now_us(void);

/*
 * Polls until one of the n descriptors (7 the most) has something, or until
 * that time of the lease clock; fills in their revents. A signal that comes
 * ends it, too. Each process that calls it has a timer of its own.
 */
void cli_poll(struct pollfd *fds, size_t n, int64_t until_us);

/* This process runs before all ordinary ones, if it may: who has to end COMMAND
   in time must not stand in line behind it. What it starts does not. */
void cli_be_prompt(void);

/* SIGKILL for this process when its parent ends. False: that has happened. */
bool cli_die_with(pid_t parent);
/* Orphans among this process's descendants become its children. Those that it
   has already are spared by cli_kill_children_but(). */
void cli_adopt_orphans(void);

/* Is there a process that is not dead, as kill() names it: pid, or -group? */
bool cli_is_alive(int target);
/* SIGKILL for each child of this process but one. Have there been any? */
bool cli_kill_children_but(pid_t spared);

/* Closes all descriptors from 3 on, but these two. */
void cli_close_all_but(int a, int b);

/* How often who cannot be told looks, in microseconds: for the end of a process
   that is nobody's child here. */
extern const int64_t cli_look_again_us;

#endif
