/* The threads of this process, by name. */
#ifndef TEST_SUPPORT_TASKS_H
#define TEST_SUPPORT_TASKS_H

#include <stdbool.h>

/* How many have a name that begins so; "": all of them. One that has just been
   started may not have its name yet. Where the system does not tell of threads,
   the test is skipped. */
int tasks_named(const char *prefix);

/* Is it the name of this one? tid: its folder in /proc/self/task. */
bool task_is_named(const char *tid, const char *prefix);

#endif
