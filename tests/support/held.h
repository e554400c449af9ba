/*
 * Which mutexes a thread holds: so a callback can see whether it is called
 * under one of the library's. A program that links rlock_held (see
 * tests/CMakeLists.txt) has the calls of its own objects and of the static
 * library counted, by the linker's --wrap. Who drives what has been started
 * does so under a mutex, too.
 */
#ifndef TEST_SUPPORT_HELD_H
#define TEST_SUPPORT_HELD_H

/* How many the calling thread holds. */
int held_here(void);

#endif
