/* release, handover, acquire and leave, when who waits has said what it wants. */
#include "table.h"

/* What A does: its release, which may grant. */
#define RELEASE(channel, bury, bell)                                           \
    "release 5 L Q U W T A " channel " 0 " bury " PUBLISH " bell
#define FREE  RELEASE("''", "0", "''")
#define HELD  "L=A@20000 "
#define WANTS "Q=b1:100@3000 W=b1:100:B:60000:7@3000"
/* B has it, for a claim. */
#define GRANTED "L=B@3000 T=now@300000"
#define TOLD    "b1<grant:B:7:1800000000000345:3000:L"

static const row release_that_grants[] = {
    {HASH, HELD WANTS, FREE, "3", GRANTED, TOLD},
    {HASH, HELD "Q=b1:100@3000 W=b1:100:B:900:7@3000", FREE, "3",
     "L=B@900 T=now@300000", "b1<grant:B:7:1800000000000345:900:L"},
    {HASH, HELD "T=2900000000000000@9000 " WANTS, FREE, "3",
     "L=B@3000 T=2900000000000001@300000",
     "b1<grant:B:7:2900000000000001:3000:L"},
    /* nobody wants anything: as ever */
    {HASH, HELD, FREE, "1", ""},
    {HASH, HELD "Q=b1:100@3000", FREE, "2", "", "b1<L"},
    /* somebody listens to Redisson's channel */
    {HASH, HELD WANTS, RELEASE("R", "0", "''"), "2", "W=b1:100:B:60000:7@3000",
     "R<0 b1<L"},
    {HASH, HELD "Q=b1:100@3000 W=b1:100:B@3000", FREE, "2", "W=b1:100:B@3000",
     "b1<L"},
    /* in another place */
    {HASH, HELD "Q=b1:101@3000 W=b1:100:B:60000:7@3000", FREE, "2",
     "W=b1:100:B:60000:7@3000", "b1<L"},
    /* the first in the queue is rung, though the second one wants it */
    {HASH, HELD "Q=b2:50,b1:100@3000 W=b1:100:B:60000:7@3000", FREE, "2", WANTS,
     "b2<L"},
    /* who is dead is passed over, and gets nothing */
    {HASH, HELD "Q=d1:50,b1:100@3000 W=b1:100:B:60000:7@3000", FREE, "3",
     GRANTED, TOLD},
    {HASH, HELD "Q=d1:50@3000 W=d1:50:X:60000:7@3000", FREE, "1",
     "T=now@300000"},
    /* nor does who has it */
    {HASH, HELD "Q=b1:100@3000 W=b1:100:A:60000:7@3000", FREE, "2",
     "W=b1:100:A:60000:7@3000", "b1<L"},
    /* who gives up */
    {HASH, HELD WANTS, RELEASE("''", "60000", "b1"), "3", GRANTED " U=@60000",
     TOLD},
    {HASH, HELD "Q=b1:100@3000 W=b1:100:A:60000:7@3000",
     RELEASE("''", "60000", "b1"), "2", "U=@60000", "b1<L"},
    {HASH, "L=B@20000 Q=b1:100@3000 W=b1:100:A:60000:7@3000",
     RELEASE("''", "60000", "b1"), "0", "L=B@20000 Q=b1:100@3000 U=@60000"},
    /* a level less */
    {HASH, "L=A*2@20000 " WANTS, "release 5 L Q U W T A R 1 0 PUBLISH ''", "1",
     "L=A@20000 " WANTS},
    /* sharded */
    {HASH, HELD "Q=s1:100@3000 W=s1:100:B:60000:7@3000",
     "release 5 L Q U W T A '' 0 0 SPUBLISH ''", "3", GRANTED,
     "sharded s1<grant:B:7:1800000000000345:3000:L"},
    /* what is refused on the way ends in a free lock */
    {HASH, HELD WANTS, FREE, "2", "W=b1:100:B:60000:7@3000", "b1<L", "-hget"},
    {HASH, HELD WANTS, FREE, "1", "T=now@300000", NULL, "-publish"},
    {HASH, HELD WANTS, FREE, "2", "T=now@300000", "b1<L", "-hset"},
    {HASH, HELD WANTS, FREE, "2", "T=now@300000", "b1<L", "-pexpire"},
    {HASH, HELD "T=! " WANTS, FREE, "2", "T=!", "b1<L"},
    {HASH, HELD "Q=b1:100@3000 W=!", FREE, "2", "W=!", "b1<L"},
};
OF_HASH(release_that_grants, release_that_grants)

#define HAND(bell) "handover 5 L T V Q W A B 60000 2000 '' " bell

static const row handover_that_grants[] = {
    {HASH, HELD, HAND("''"), "token", "L=B@60000 T=now@300000"},
    /* its own bell leaves, with what it wanted */
    {HASH, HELD "Q=b1:now@3000 W=b1:now:B:60000:7@3000", HAND("b1"), "token",
     "L=B@60000 T=now@300000"},
    /* somebody else is first */
    {HASH, HELD "Q=b1:100@3000 W=b1:100:X:60000:7@3000", HAND("''"), "{ 4 }",
     "L=X@3000 T=now@300000", "b1<grant:X:7:1800000000000345:3000:L"},
    {HASH, HELD "Q=b1:100@3000", HAND("''"), "{ 2 }", "", "b1<L"},
    /* somebody listens to Redisson's channel */
    {HASH, HELD "Q=b1:100@3000 W=b1:100:X:60000:7@3000",
     "handover 5 L T V Q W A B 60000 2000 R ''", "{ 2 }",
     "W=b1:100:X:60000:7@3000", "R<0 b1<L"},
    {HASH, HELD, "handover 5 L T V Q W A B 60000 2000 R ''", "token",
     "L=B@60000 T=now@300000"},
};
OF_HASH(handover_that_grants, handover_that_grants)

#define ASK(bell, beat) "acquire 5 L T U Q W A 60000 1 " bell " 0 '' " beat

static const row acquire_that_wants[] = {
    {HASH, "L=B@20000", ASK("b1", "77"), "{ 0 ~20000 now 0 0 }",
     "L=B@20000 Q=b1:now@6000 W=b1:now:A:60000:77@6000"},
    {HASH, "L=B@20000", ASK("''", "77"), "{ 0 ~20000 0 0 -1 B -1 }", SAME},
    {HASH, "", ASK("b1", "77"), "token", "L=A@60000 T=now@300000"},
    {HASH, "Q=b1:100@3000 W=b1:100:A:60000:77@3000", ASK("b1", "78"), "token",
     "L=A@60000 T=now@300000"},
    {HASH, "L=A@2000 T=5@400000 Q=b1:100@3000 W=b1:100:A:60000:77@3000",
     ASK("b1", "78"), "5", "L=A@60000 T=5@400000"},
    {HASH, "L=B@20000", ASK("b1", "77"), "{ 0 ~20000 now 0 0 }",
     "L=B@20000 Q=b1:now@6000", NULL, "-hset"},
};
OF_HASH(acquire_that_wants, acquire_that_wants)

static const row leave_of_who_wanted[] = {
    {HASH, "L=A@20000 " WANTS, "leave 4 L Q T W b1", "{ 1 A -1 }", "L=A@20000"},
    {HASH, WANTS, "leave 3 L Q T b1", "{ 1 '' -1 }", "W=b1:100:B:60000:7@3000"},
};
OF_HASH(leave_of_who_wanted, leave_of_who_wanted)
