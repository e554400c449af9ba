/* acquire, with what it leaves in queues and token keys. */
#include "table.h"

#define TAKE "acquire 3 L T U A 60000"
#define ASK(level, bell, ticket)                                               \
    "acquire 4 L T U Q A 60000 " level " " bell " " ticket
#define HAS "L=A@60000 T=now@300000"

static const row of_a_free_lock[] = {
    {ALL, "", TAKE, "token", HAS},
    {ALL, "T=5@200000", TAKE, "token", HAS},
    {ALL, "T=x@200000", TAKE, "token", HAS},
    {ALL, "T=0123@200000", TAKE, "token", HAS},
    {ALL, "T=2900000000000000@9000", TAKE, "2900000000000001",
     "L=A@60000 T=2900000000000001@300000"},
    {ALL, "T=9999999999999999@9000", TAKE, "10000000000000000",
     "L=A@60000 T=10000000000000000@300000"},
    {ALL, "", "acquire 3 L T U A 20000", "token", "L=A@20000 T=now@300000"},
    {ALL, "", "acquire 3 L T U A 150000", "token", "L=A@150000 T=now@300000"},
    {ALL, "", "acquire 3 L T U A 200000", "token", "L=A@200000 T=now@400000"},
    {ALL, "", "acquire 3 L T U A 9000000", "token",
     "L=A@9000000 T=now@3600000"},
    {ALL, "", "acquire 3 L T U A 1000000000000000", "token",
     "L=A@1000000000000000 T=now@3600000"},
    {ALL, "", "acquire 3 L T U A 150001", "token", "L=A@150001 T=now@300002"},
    {ALL, "", "acquire 3 L T U A 1800001", "token",
     "L=A@1800001 T=now@3600000"},
    {ALL, "T=999999999999999998@9000", TAKE, "999999999999999999",
     "L=A@60000 T=999999999999999999@300000"},
    {ALL, "T=1000000000000000000@9000", TAKE, "token", HAS},
    {HASH, "T=now@9000", TAKE, "1800000000000346",
     "L=A@60000 T=1800000000000346@300000"},
    /* a holder whose id ends in no digits */
    {TIMESTAMP, "", "acquire 3 L T U F 60000", "token",
     "L=?1800000061.0000000000000000@120088 T=now@300000"},
    {ALL, "", TAKE, "!READONLY", SAME, NULL, READONLY},
    /* with the least token that is wanted */
    {ALL, "", ASK("1", "''", "0 0"), "{ 1 token now }", HAS},
    {ALL, "", ASK("1", "''", "0 5"), "{ 1 token now }", HAS},
    {ALL, "", ASK("1", "''", "0 2900000000000000"),
     "{ 1 2900000000000000 now }", "L=A@60000 T=2900000000000000@300000"},
    {ALL, "T=2900000000000007@9000", ASK("1", "''", "0 2900000000000000"),
     "{ 1 2900000000000008 now }", "L=A@60000 T=2900000000000008@300000"},
    /* with a bell */
    {ALL, "", ASK("1", "b1", "0"), "token", HAS},
    {ALL, "Q=b1:100,b2:200@3000", ASK("1", "b1", "100"), "token",
     HAS " Q=b2:200@3000"},
    {ALL, "Q=b1:100@3000", ASK("1", "b1", "100"), "token", HAS},
    {ALL, "Q=b1:100@3000", ASK("1", "''", "0"), "token", HAS " Q=b1:100@3000"},
    /* what is refused on the way */
    {ALL, "Q=b1:100@3000", ASK("1", "b1", "100"), "token", HAS " Q=b1:100@3000",
     NULL, "-zrem"},
    {KEPT, "", TAKE, "!OOM", SAME, NULL, OOM},
    {ALL, "T=!", TAKE, "!WRONGTYPE", SAME},
    {HASH, "", TAKE, "!", "T=now@300000", NULL, "-pexpire"},
    /* a level more of what is gone */
    {ALL, "", ASK("2", "''", "0"), "{ -1 }", SAME},
    {ALL, "T=5@200000", ASK("2", "b1", "0"), "{ -1 }", SAME},
    /* given up */
    {ALL, "U=@50000", TAKE, "{ -2 }", SAME},
    {ALL, "U=@50000", ASK("2", "b1", "0"), "{ -2 }", SAME},
};
OF_ALL(acquire_of_a_free_lock, of_a_free_lock)

static const row of_ones_own[] = {
    {ALL, "L=A@20000 T=5@200000", TAKE, "5", "L=A@60000 T=5@300000"},
    {ALL, "L=A@20000 T=5@400000", TAKE, "5", "L=A@60000 T=5@400000"},
    {ALL, "L=A@90000 T=5@400000", TAKE, "5", SAME},
    {HASH, "L=A*3@20000 T=5@400000", TAKE, "5", "L=A*1@60000 T=5@400000"},
    {ALL, "L=A@20000 T=5@400000", ASK("2", "''", "0"), "5",
     "L=A*2@60000 T=5@400000"},
    {ALL, "L=A*2@90000 T=5@400000", ASK("3", "''", "0"), "5",
     "L=A*3@90000 T=5@400000"},
    {KEPT, "L=A T=5@400000", TAKE, "5", "L=A@60000 T=5@400000"},
    {ALL, "L=A@20000 T=5@400000", ASK("1", "''", "0 9"), "5",
     "L=A@60000 T=5@400000"},
    /* whose token is not known any more */
    {ALL, "L=A@20000", TAKE, "token", HAS},
    {ALL, "L=A@20000 T=x@9000", TAKE, "token", HAS},
    {ALL, "L=A@20000 T=!", TAKE, "!WRONGTYPE", SAME},
    {ALL, "L=A@20000", ASK("2", "''", "0"), "0", "L=A*2@60000"},
    {ALL, "L=A@20000 T=!", ASK("2", "''", "0"), "0", "L=A*2@60000 T=!"},
    /* with a bell */
    {ALL, "L=A@20000 T=5@400000 Q=b1:100,b2:200@3000", ASK("1", "b1", "100"),
     "5", "L=A@60000 T=5@400000 Q=b2:200@3000"},
    {ALL, "L=A@20000 T=5@400000 Q=b1:100@3000", ASK("1", "b1", "100"), "5",
     "L=A@60000 T=5@400000 Q=b1:100@3000", NULL, "-zrem"},
    /* given up */
    {ALL, "L=A@20000 T=5@400000 U=@50000", TAKE, "{ -2 }", SAME},
    {ALL, "L=A@20000 T=5@400000 U=@50000", ASK("2", "b1", "0"), "{ -2 }", SAME},
    /* the digits of the own stamp are no fraction: it ends 26 ms earlier */
    {TIMESTAMP, "L=A@60000 T=5@400000", "acquire 3 L T U A 60100", "5",
     "L=A@60100 T=5@400000"},
    /* its time has passed, and nobody has taken it over */
    {TIMESTAMP, "L=A@-5000 T=5@400000", TAKE, "5", "L=A@60000 T=5@400000"},
    {TIMESTAMP, "L=A@-5000 T=5@400000", ASK("2", "''", "0"), "5",
     "L=A@60000 T=5@400000"},
    {TIMESTAMP, "L=A@20000 T=5@400000", TAKE, "5", "L=A@60000 T=5@400000", NULL,
     OOM},
};
OF_ALL(acquire_of_ones_own, of_ones_own)

static const row of_anothers[] = {
    {KEPT, "L=B@20000 T=now-7000@200000", TAKE, "{ 0 ~20000 0 0 -1 B ~7000 }",
     SAME},
    {TIMESTAMP, "L=B@20000 T=now-7000@200000", TAKE,
     "{ 0 ~20000 0 0 -1 value -1 }", SAME},
    {KEPT, "L=X@20000", TAKE, "{ 0 ~20000 0 0 -1 X -1 }", SAME},
    {KEPT, "L=X@20000 T=!", TAKE, "{ 0 ~20000 0 0 -1 X -1 }", SAME},
    {HASH, "L=F@20000", TAKE, "{ 0 ~20000 0 0 -1 F -1 }", SAME},
    {HASH, "L=F@20000 T=now-7000@200000", TAKE, "{ 0 ~20000 0 0 -1 F -1 }",
     SAME},
    {STRING, "L=F@20000", TAKE, "{ 0 ~20000 0 1 -1 F -1 }", SAME},
    {TIMESTAMP, "L=F@20000", TAKE, "{ 0 ~20000 0 1 -1 value -1 }", SAME},
    {KEPT, "L=B", TAKE, "{ 0 -1 0 0 -1 B -1 }", SAME},
    {TIMESTAMP, "L=F@20000/", TAKE, "{ 0 ~20000 0 1 -1 value -1 }",
     "L=F@20000"},
    {ALL, "L=B@20000", ASK("2", "''", "0"), "{ -1 }", SAME},
    {ALL, "L=B@20000", ASK("2", "b1", "0"), "{ -1 }", SAME},
    {ALL, "L=B@20000 U=@50000", TAKE, "{ -2 }", SAME},
    {ALL, "L=B@20000 U=@50000", ASK("1", "b1", "0"), "{ -2 }", SAME},
    /* its token is of the future */
    {KEPT, "L=B@20000 T=now+5000@200000", TAKE, "{ 0 ~20000 0 0 -1 B 0 }",
     SAME},
    {KEPT, "L=B@20000 T=now@200000", TAKE, "{ 0 ~20000 0 0 -1 B 0 }", SAME},
    /* queued */
    {ALL, "L=B@20000", ASK("1", "b1", "0"), "{ 0 ~20000 now 0 0 }",
     "L=B@20000 Q=b1:now@6000"},
    {ALL, "L=B@20000 Q=b2:50", ASK("1", "b1", "100"), "{ 0 ~20000 100 0 1 }",
     "L=B@20000 Q=b2:50,b1:100@6000"},
    {ALL, "L=B@20000 Q=b1:100,b2:200", ASK("1", "b1", "100"),
     "{ 0 ~20000 100 0 0 }", "L=B@20000 Q=b1:100,b2:200@6000"},
    {KEPT, "L=B@20000 Q=b1:100,b2:200", ASK("1", "''", "0"),
     "{ 0 ~20000 0 0 -1 B -1 }", SAME},
    /* and says who it is */
    {ALL, "L=B@20000", "acquire 5 L T U Q W A 60000 1 b1 100",
     "{ 0 ~20000 100 0 0 }", "L=B@20000 Q=b1:100@6000 W=b1:100:A@6000"},
    {ALL, "L=B@20000 W=b1:50:X@9000", "acquire 5 L T U Q W A 60000 1 b1 100",
     "{ 0 ~20000 100 0 0 }", "L=B@20000 Q=b1:100@6000 W=b1:100:A@6000"},
    {KEPT, "L=B@20000", "acquire 5 L T U Q W A 60000 1 '' 0",
     "{ 0 ~20000 0 0 -1 B -1 }", SAME},
    /* what is refused on the way */
    {ALL, "L=B@20000 Q=!", ASK("1", "b1", "100"), "{ 0 ~20000 100 0 -1 }",
     SAME},
    {ALL, "L=B@20000 W=!", "acquire 5 L T U Q W A 60000 1 b1 100",
     "{ 0 ~20000 100 0 0 }", "L=B@20000 W=! Q=b1:100@6000"},
    {ALL, "L=B@20000", ASK("1", "b1", "100"), "{ 0 ~20000 100 0 -1 }",
     "L=B@20000 Q=b1:100@6000", NULL, "-zrank"},
    {KEPT, "L=B@20000", ASK("1", "b1", "100"), "{ 0 ~20000 100 0 -1 }", SAME,
     NULL, OOM},
    {ALL, "L=B@20000", ASK("1", "b1", "100"), "!READONLY", SAME, NULL,
     READONLY},
    /* taken over */
    {TIMESTAMP, "L=B@-5000 T=5@200000", TAKE, "token", HAS},
    {TIMESTAMP, "L=F@-5000", TAKE, "token", HAS},
    {TIMESTAMP, "L=F@-5000/", TAKE, "token", HAS},
    {TIMESTAMP, "L=F@-5000", ASK("1", "''", "0 0"), "{ 1 token now }", HAS},
    {TIMESTAMP, "L=F@-5000 Q=b1:100,b2:200@3000", ASK("1", "b1", "100"),
     "token", HAS " Q=b2:200@3000"},
    {TIMESTAMP, "L=F@-5000", ASK("2", "''", "0"), "{ -1 }", SAME},
    /* to the millisecond: it is .912 */
    {TIMESTAMP, "L=?1800000000.911@9000", TAKE, "token", HAS},
    {TIMESTAMP, "L=?1800000000.912@9000", TAKE, "{ 0 0 0 1 -1 value -1 }",
     SAME},
    {TIMESTAMP, "L=?1800000000.95@9000", TAKE, "{ 0 38 0 1 -1 value -1 }",
     SAME},
    {TIMESTAMP, "L=?1800000001@9000", TAKE, "{ 0 88 0 1 -1 value -1 }", SAME},
    {TIMESTAMP, "L=?1800000001.", TAKE, "{ 0 88 0 1 -1 value -1 }",
     "L=?1800000001.@60088"},
    {TIMESTAMP, "L=?9999999999999@9000", TAKE,
     "{ 0 9998199999998088 0 1 -1 value -1 }", SAME},
    {TIMESTAMP, "L=?10000000000000@9000", TAKE, "!WRONGTYPE", SAME},
    {TIMESTAMP, "L=?-1800000001@9000", TAKE, "!WRONGTYPE", SAME},
    {TIMESTAMP, "L=F@-5000 U=@50000", TAKE, "{ -2 }", SAME},
};
OF_ALL(acquire_of_anothers, of_anothers)

#define BAD "!ERR rlock: bad lease, level, ticket or token"

static const row told_badly[] = {
    {ALL, "", "acquire 3 L T U A 0", BAD, SAME},
    {ALL, "", "acquire 3 L T U A -1", BAD, SAME},
    {ALL, "", "acquire 3 L T U A 1.5", BAD, SAME},
    {ALL, "", "acquire 3 L T U A x", BAD, SAME},
    {ALL, "", "acquire 3 L T U A ''", BAD, SAME},
    {ALL, "", "acquire 3 L T U A 060000", BAD, SAME},
    {ALL, "", "acquire 3 L T U A 12345678901234567", BAD, SAME},
    {ALL, "L=A@20000", "acquire 3 L T U A 0", BAD, SAME},
    {ALL, "L=B@20000", "acquire 3 L T U A 60000x", BAD, SAME},
    {ALL, "", "acquire 4 L T U Q A 60000 1", BAD, SAME},
    {ALL, "", "acquire 4 L T U Q A 60000 1 b1", BAD, SAME},
    {ALL, "", ASK("0", "''", "0"), BAD, SAME},
    {ALL, "", ASK("x", "''", "0"), BAD, SAME},
    {ALL, "", ASK("-1", "''", "0"), BAD, SAME},
    {ALL, "L=B@20000", ASK("1", "b1", "x"), BAD, SAME},
    {ALL, "L=B@20000", ASK("1", "b1", "-1"), BAD, SAME},
    {ALL, "L=B@20000", ASK("1", "b1", "''"), BAD, SAME},
    {ALL, "", ASK("1", "''", "0 x"), BAD, SAME},
    {ALL, "", ASK("1", "''", "0 -5"), BAD, SAME},
    {ALL, "", ASK("1", "''", "0 05"), BAD, SAME},
    {ALL, "", ASK("1", "''", "0 1234567890123456789"), BAD, SAME},
    /* and where there is no lock */
    {ALL, "L=!", TAKE, "!WRONGTYPE", SAME},
    {ALL, "L=! T=5@200000", ASK("1", "b1", "0"), "!WRONGTYPE", SAME},
    {TIMESTAMP, "L=?@20000", TAKE, "!WRONGTYPE", SAME},
    {TIMESTAMP, "L=?@20000 U=@50000", ASK("1", "b1", "0"), "!WRONGTYPE", SAME},
};
OF_ALL(acquire_told_badly, told_badly)

/* --- without a token -------------------------------------------------------- */

#undef TAKE
#undef ASK
#undef HAS
#define TAKE "tokenless/acquire 2 L U A 60000"
#define ASK(level, bell, ticket)                                               \
    "tokenless/acquire 3 L U Q A 60000 " level " " bell " " ticket
#define HAS "L=A@60000"

static const row tokenless[] = {
    {HASH, "", TAKE, "1", HAS},
    {HASH, "T=5@200000", TAKE, "1", HAS " T=5@200000"},
    {HASH, "T=!", TAKE, "1", HAS " T=!"},
    {HASH, "", TAKE, "1", HAS, NULL, "-time -set -get"},
    {HASH, "", TAKE, "!READONLY", SAME, NULL, READONLY},
    {HASH, "", TAKE, "!OOM", SAME, NULL, OOM},
    {HASH, "", TAKE, "!", SAME, NULL, "-pexpire"},
    {HASH, "Q=b1:100,b2:200@3000", ASK("1", "b1", "100"), "1",
     HAS " Q=b2:200@3000"},
    {HASH, "Q=b1:100@3000", ASK("1", "''", "0"), "1", HAS " Q=b1:100@3000"},
    {HASH, "", ASK("2", "''", "0"), "{ -1 }", SAME},
    /* given up */
    {HASH, "U=@50000", TAKE, "{ -2 }", SAME},
    {HASH, "U=@50000 L=B@20000", TAKE, "{ -2 }", SAME},
    /* once more */
    {HASH, "L=A@20000", TAKE, "1", HAS},
    {HASH, "L=A@90000 Q=b1:100@3000", ASK("1", "b1", "100"), "1", "L=A@90000"},
    {HASH, "L=A@20000 T=5@200000", ASK("2", "''", "0"), "1",
     "L=A*2@60000 T=5@200000"},
    {HASH, "L=A*2@20000", ASK("1", "''", "0"), "1", HAS},
    /* another has it, for how long is not known */
    {HASH, "L=B@20000 T=now@200000", TAKE, "{ 0 ~20000 0 0 -1 B -1 }", SAME},
    {HASH, "L=B@20000", ASK("1", "b1", "0"), "{ 0 ~20000 now 0 0 }",
     "L=B@20000 Q=b1:now@6000"},
    {HASH, "L=B@20000 Q=b2:50@3000", ASK("1", "b1", "100"),
     "{ 0 ~20000 100 0 1 }", "L=B@20000 Q=b2:50,b1:100@6000"},
    {HASH, "L=B@20000", "tokenless/acquire 4 L U Q W A 60000 1 b1 100",
     "{ 0 ~20000 100 0 0 }", "L=B@20000 Q=b1:100@6000 W=b1:100:A@6000"},
    {HASH, "L=B@20000", ASK("2", "''", "0"), "{ -1 }", SAME},
    {HASH, "L=!", TAKE, "!WRONGTYPE", SAME},
    /* what makes no sense */
    {HASH, "", "tokenless/acquire 2 L U A x", "!ERR rlock: bad", SAME},
    {HASH, "", "tokenless/acquire 2 L U A 0", "!ERR rlock: bad", SAME},
    {HASH, "", ASK("x", "''", "0"), "!ERR rlock: bad", SAME},
};
OF_HASH(tokenless, tokenless)
