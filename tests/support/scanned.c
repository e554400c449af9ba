#include "scanned.h"

#include <string.h>

#include "test.h"

bool scan_copy(const rlock_lock_info *l, void *seen)
{
    scan_seen *all = seen;
    if (all->n == SCAN_SEEN_MAX)
        FAIL("more than %d locks", SCAN_SEEN_MAX);
    scan_told *t = &all->of[all->n++];
    EXPECT(l->name_len < sizeof t->name && l->name[l->name_len] == '\0');
    memcpy(t->name, l->name, l->name_len + 1);
    t->l = *l;
    EXPECT(l->n_holders <= 1 && (l->n_holders == 0) == (l->holders == NULL));
    if (l->kind == RLOCK_KIND_PERMIT)
        EXPECT(l->holders_in_all >= (int64_t)l->n_holders);
    else
        EXPECT_INT(l->holders_in_all, l->n_holders);
    if (l->holders)
        t->h = *l->holders;
    return all->n != all->most;
}

scan_seen scan_look(rlock_client *cl, const char *glob, unsigned flags)
{
    static scan_seen all;
    memset(&all, 0, sizeof all);
    EXPECT_STATUS(rlock_scan(cl, glob, flags, scan_copy, &all), RLOCK_OK);
    for (size_t i = 1; i < all.n; i++)
        EXPECT(strcmp(all.of[i - 1].name, all.of[i].name) <= 0);
    return all;
}

scan_told scan_only(rlock_client *cl, const char *glob, unsigned flags)
{
    scan_seen all = scan_look(cl, glob, flags);
    EXPECT_INT(all.n, 1);
    return all.of[0];
}
