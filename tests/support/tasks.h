/* The threads of this process, by name. */
#ifndef TEST_SUPPORT_TASKS_H
#define TEST_SUPPORT_TASKS_H

/* How many have a name that begins so; "": all of them. One that has just been
   started may not have its name yet. Where the system does not tell of threads,
   the test is skipped. */
int tasks_named(const char *prefix);

#endif
