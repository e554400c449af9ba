/* What rlock_scan() tells, copied. */
#ifndef TEST_SUPPORT_SCANNED_H
#define TEST_SUPPORT_SCANNED_H

#include <rlock/scan.h>

enum { SCAN_SEEN_MAX = 300 };

typedef struct scan_told {
    char name[64];
    rlock_lock_info l; /* without what it points to */
    rlock_holder h;
} scan_told;

typedef struct scan_seen {
    size_t n, most; /* 0: all of them */
    scan_told of[SCAN_SEEN_MAX];
} scan_seen;

/* For rlock_scan(), into a scan_seen; false: there are most of them. */
bool scan_copy(const rlock_lock_info *l, void *seen);

/* All that there are, which are by name; and the only one. */
scan_seen scan_look(rlock_client *cl, const char *glob, unsigned flags);
scan_told scan_only(rlock_client *cl, const char *glob, unsigned flags);

#endif
