/* Descriptors of this process: open, readable, how many. */
#ifndef TEST_SUPPORT_DESCRIPTOR_H
#define TEST_SUPPORT_DESCRIPTOR_H

#include "test.h"

/* Is it an eventfd, as what rlock_lost_fd() gives out? A connection may have
   got its number. (An unlock that opens one with several clients may itself
   make an eventfd: then only a descriptor that was readable can be told from
   it.) */
bool fd_is_open(int fd);
bool fd_is_readable(int fd);
int fds_open(void);

/* Until it is readable, without any call of the library; when (test_now_ms). */
int64_t fd_wait(int fd, int limit_ms);

/* The descriptor of a hold that is good, or of one that is lost. */
int lost_fd_of_held(rlock *lk);
int lost_fd_of_lost(rlock *lk);
void expect_no_lost_fd(rlock *lk, rlock_status why);

#endif
