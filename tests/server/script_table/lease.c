/* renew and extend, and what only looks: inspect, waits, guards. */
#include "table.h"

#define RENEW "renew 1 L A 60000"

static const row renew[] = {
    {ALL, "L=A*2@20000 T=5@200000", RENEW, "1", "L=A*2@60000 T=5@200000"},
    {ALL, "L=A@90000", RENEW, "1", SAME},
    {KEPT, "L=A", RENEW, "1", "L=A@60000"},
    {TIMESTAMP, "L=A@20000/", RENEW, "1", "L=A@60000"},
    {TIMESTAMP, "L=A@-5000", RENEW, "1", "L=A@60000"},
    /* the digits of the own stamp are no fraction: it ends 26 ms earlier */
    {TIMESTAMP, "L=A@60000", "renew 1 L A 60100", "1", "L=A@60100"},
    {ALL, "L=A@20000", RENEW, "1", "L=A@60000", NULL, OOM},
    {ALL, "", RENEW, "0", SAME},
    {ALL, "L=B@20000", RENEW, "0", SAME},
    {ALL, "L=F@20000", RENEW, "0", SAME},
    {ALL, "L=!", RENEW, "!WRONGTYPE", SAME},
    {TIMESTAMP, "L=?@20000", RENEW, "!WRONGTYPE", SAME},
    /* told the token */
    {ALL, "L=A@20000", "renew 2 L T A 60000 5", "1", "L=A@60000"},
    {ALL, "L=A@20000 T=5@9000", "renew 2 L T A 60000 5", "1",
     "L=A@60000 T=5@300000"},
    {ALL, "L=A@20000 T=x@9000", "renew 2 L T A 60000 5", "1",
     "L=A@60000 T=x@300000"},
    {ALL, "L=A@20000 T=!", "renew 2 L T A 60000 5", "1", "L=A@60000 T=!"},
    {ALL, "L=A@20000 T=6@9000", "renew 2 L T A 60000 5", "0", SAME},
    {ALL, "L=A@20000 T=10@9000", "renew 2 L T A 60000 9", "0", SAME},
    /* keeps the token's key */
    {ALL, "L=A@20000 T=6@9000", "renew 2 L T A 60000", "1",
     "L=A@60000 T=6@300000"},
    {ALL, "L=A@90000 T=6@9000", "renew 2 L T A 60000", "1",
     "L=A@90000 T=6@300000"},
    {ALL, "L=A@20000 T=6@9000", "renew 2 L T A 200000", "1",
     "L=A@200000 T=6@400000"},
    {ALL, "L=A@20000 T=6@9000", "renew 2 L T A 3600000", "1",
     "L=A@3600000 T=6@3600000"},
    {ALL, "L=A@20000", "renew 2 L T A 60000", "1", "L=A@60000"},
    {ALL, "L=B@20000 T=6@9000", "renew 2 L T A 60000", "0", SAME},
    {ALL, "L=A@20000 T=6@9000", "renew 2 L T A 60000", "1",
     "L=A@60000 T=6@300000", NULL, OOM},
    /* only looks */
    {ALL, "L=A@20000 T=6@9000", "renew 2 L T A 0", "1", SAME},
    {KEPT, "L=A*2@20000", "renew 1 L A 0", "1", SAME},
    {KEPT, "L=A", "renew 1 L A 0", "1", SAME},
    {TIMESTAMP, "L=A@20000", "renew 1 L A 0", "1", SAME},
    {TIMESTAMP, "L=A@-5000", "renew 1 L A 0", "1", SAME},
    {ALL, "L=A@20000", "renew 2 L T A 0 5", "1", SAME},
    {ALL, "L=A@20000 T=6@9000", "renew 2 L T A 0 5", "0", SAME},
    {ALL, "L=B@20000", "renew 1 L A 0", "0", SAME},
    {ALL, "", "renew 1 L A 0", "0", SAME},
    {ALL, "L=!", "renew 1 L A 0", "!WRONGTYPE", SAME},
    /* with as many digits as may be */
    {ALL, "L=A@20000", "renew 1 L A 1000000000000000", "1",
     "L=A@1000000000000000"},
    {ALL, "L=A@20000 T=999999999999999999@9000",
     "renew 2 L T A 60000 999999999999999998", "0", SAME},
    {ALL, "L=A@20000 T=999999999999999998@9000",
     "renew 2 L T A 60000 999999999999999999", "1",
     "L=A@60000 T=999999999999999998@300000"},
    {ALL, "L=A@20000 T=1000000000000000000@9000", "renew 2 L T A 60000 5", "1",
     "L=A@60000 T=1000000000000000000@300000"},
    {ALL, "L=A@20000", "renew 2 L T A 60000 1000000000000000000",
     "!ERR rlock: bad", SAME},
    /* told badly */
    {ALL, "L=A@20000", "renew 1 L A 00", "!ERR rlock: bad", SAME},
    {ALL, "L=A@20000", "renew 1 L A x", "!ERR rlock: bad", SAME},
    {ALL, "L=A@20000", "renew 1 L A 60000.5", "!ERR rlock: bad", SAME},
    {ALL, "L=A@20000", "renew 1 L A 12345678901234567", "!ERR rlock: bad",
     SAME},
    {ALL, "L=A@20000", "renew 1 L A 60000 5", "!ERR rlock: bad", SAME},
    {ALL, "L=A@20000", "renew 2 L T A 60000 x", "!ERR rlock: bad", SAME},
};
OF_ALL(renew, renew)

#define EXTEND "extend 1 L A 60000"

static const row extend[] = {
    {ALL, "L=A*2@20000 T=5@200000", EXTEND, "1", "L=A*2@60000 T=5@200000"},
    {ALL, "L=A@90000", EXTEND, "1", "L=A@60000"},
    {KEPT, "L=A", EXTEND, "1", "L=A@60000"},
    {TIMESTAMP, "L=A@-5000", EXTEND, "1", "L=A@60000"},
    {ALL, "L=A@20000", EXTEND, "1", "L=A@60000", NULL, OOM},
    {ALL, "", EXTEND, "0", SAME},
    {ALL, "L=B@20000", EXTEND, "0", SAME},
    {ALL, "L=F@20000", EXTEND, "0", SAME},
    {ALL, "L=!", EXTEND, "!WRONGTYPE", SAME},
    {TIMESTAMP, "L=?@20000", EXTEND, "!WRONGTYPE", SAME},
    {ALL, "L=A@20000 T=5@9000", "extend 2 L T A 60000 5", "1",
     "L=A@60000 T=5@9000"},
    {ALL, "L=A@90000 T=6@9000", "extend 2 L T A 60000 5", "0", SAME},
    {ALL, "L=A@20000", "extend 1 L A 1000000000000000", "1",
     "L=A@1000000000000000"},
    {ALL, "L=A@20000", "extend 1 L A 12345678901234567", "!ERR rlock: bad",
     SAME},
    {ALL, "L=A@20000", EXTEND, "!READONLY", SAME, NULL, READONLY},
    {ALL, "L=A@20000", "extend 1 L A 0", "!ERR rlock: bad", SAME},
    {ALL, "L=A@20000", "extend 1 L A x", "!ERR rlock: bad", SAME},
    {ALL, "L=A@20000", "extend 1 L A 60000 5", "!ERR rlock: bad", SAME},
};
OF_ALL(extend, extend)

static const row inspect[] = {
    {ALL, "T=5@9000", "inspect 1 L", "{ }", SAME},
    {HASH, "L=A*3@20000", "inspect 1 L", "{ A 3 ~20000 }", SAME},
    {HASH, "L=F", "inspect 1 L", "{ F 1 -1 }", SAME},
    {STRING, "L=A@20000", "inspect 1 L", "{ A 1 ~20000 }", SAME},
    /* the digits are a fraction to who is not told whose they are */
    {TIMESTAMP, "L=A@20000", "inspect 1 L", "{ value 1 20114 }", SAME},
    {TIMESTAMP, "L=A@-5000", "inspect 1 L", "{ }", SAME},
    /* to the millisecond: it is .912 */
    {TIMESTAMP, "L=?1800000000.911@9000", "inspect 1 L", "{ }", SAME},
    {TIMESTAMP, "L=?1800000000.912@9000", "inspect 1 L", "{ value 1 0 }", SAME},
    {TIMESTAMP, "L=?1800000000.9129@9000", "inspect 1 L", "{ value 1 0 }",
     SAME},
    {TIMESTAMP, "L=?1800000000.91@9000", "inspect 1 L", "{ }", SAME},
    {TIMESTAMP, "L=?1800000000.95@9000", "inspect 1 L", "{ value 1 38 }", SAME},
};
OF_ALL(inspect, inspect)

#define WAITS "waits 3 L Q W"

static const row waits[] = {
    {ALL, "", WAITS, "{ now 0 }", SAME},
    {HASH, "L=A*3@20000", WAITS, "{ now 1 A 3 ~20000 }", SAME},
    {STRING, "L=A@20000", WAITS, "{ now 1 A 1 ~20000 }", SAME},
    {TIMESTAMP, "L=A@20000", WAITS, "{ now 1 value 1 ~80000 }", SAME},
    {HASH, "L=A@20000 Q=b1:100,b2:200@3000 W=b2:200:B@3000", WAITS,
     "{ now 1 A 1 ~20000 b1 100 '' -1 '' b2 200 B -1 '' }", SAME},
    {HASH, "L=A@20000 Q=b2:300@3000 W=b2:200:B@3000", WAITS,
     "{ now 1 A 1 ~20000 b2 300 '' -1 '' }", SAME},
    {ALL, "Q=b2:300@3000 W=!", WAITS, "{ now 0 b2 300 '' -1 '' }", SAME},
    {ALL, "Q=!", WAITS, "{ now 0 }", SAME},
    {ALL, "L=!", WAITS, "{ now 0 }", SAME},
};
OF_ALL(waits, waits)

#define SURVEY "survey 3 L Q T"

static const row survey[] = {
    {ALL, "", SURVEY, "{ now 0 '' 0 -2 0 '' }", SAME},
    {HASH, "L=A*3@20000 T=5@9000", SURVEY, "{ now 1 A 3 ~20000 0 5 }", SAME},
    {STRING, "L=A@20000", SURVEY, "{ now -1 A 1 ~20000 0 '' }", SAME},
    {TIMESTAMP, "L=A@20000", SURVEY, "{ now -1 value 1 ~80000 0 '' }", SAME},
    {HASH, "L=F Q=b1:100,b2:200@3000", SURVEY, "{ now 1 F 1 -1 2 '' }", SAME},
    {ALL, "Q=! T=5@9000", SURVEY, "{ now 0 '' 0 -2 0 5 }", SAME},
    {ALL, "L=!", SURVEY, "{ now -2 '' 0 -1 0 '' }", SAME},
};
OF_ALL(survey, survey)

#define GUARD       "guard 2 G L hello A"
#define GUARD_TOKEN "guard_token 3 G L T hello A 5"

static const row guard[] = {
    {ALL, "L=A*2@20000", GUARD, "OK", "L=A*2@20000 G=hello"},
    {ALL, "", GUARD, "!NOTHELD", SAME},
    {ALL, "L=B@20000", GUARD, "!NOTHELD", SAME},
    {ALL, "L=F@20000", GUARD, "!NOTHELD", SAME},
    {ALL, "L=!", GUARD, "!NOTHELD", SAME},
    {TIMESTAMP, "L=A@-5000", GUARD, "!NOTHELD", SAME},
    {TIMESTAMP, "L=?@20000", GUARD, "!NOTHELD", SAME},
    {ALL, "L=A@20000", GUARD_TOKEN, "OK", "L=A@20000 G=hello"},
    {ALL, "L=A@20000 T=5@9000", GUARD_TOKEN, "OK",
     "L=A@20000 T=5@9000 G=hello"},
    {ALL, "L=A@20000 T=x@9000", GUARD_TOKEN, "OK",
     "L=A@20000 T=x@9000 G=hello"},
    {ALL, "L=A@20000 T=6@9000", GUARD_TOKEN, "!NOTHELD", SAME},
    {ALL, "L=B@20000 T=5@9000", GUARD_TOKEN, "!NOTHELD", SAME},
};
OF_ALL(guard, guard)
