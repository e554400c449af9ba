/* acquire and release of a fair lock. */
#include "table.h"

#define TO_TAKE     "fair/acquire 6 L T U S I Q A 60000"
#define BY(bell)    " 1 " bell " 0 7"
#define END         "fair/release 6 L Q U T S I A R"
#define HAS         "L=A@60000 T=now@300000"
#define A_HAS       "L=A@20000 T=5@200000"
#define B_HAS       "L=B@20000 T=5@200000"
#define B_STANDS    " S=B:100@3000 I=B:60000:f:b1,b1:2000:7@3000"
#define NOW         "1800000000000345"
#define GRANT       "b1<grant:B:7:" NOW ":3000:L"
#define B_IS_LET_IN "L=B@3000 T=" NOW "@300000 I=b1:2000:7@3000"

static const row taking[] = {
    {HASH, "", TO_TAKE, "token", HAS},
    {HASH, "T=2900000000000000@9000", TO_TAKE, "2900000000000001",
     "L=A@60000 T=2900000000000001@300000"},
    {HASH, "", TO_TAKE BY("b1"), "token", HAS},
    {HASH, "", TO_TAKE " 2 '' 0 0", "{ -1 }", SAME},
    {HASH, "U=@50000", TO_TAKE, "{ -2 }", SAME},
    {HASH, "L=A@20000 T=5@200000", TO_TAKE, "5", "L=A@60000 T=5@300000"},
    {HASH, "L=A@20000 T=5@200000", TO_TAKE " 2 '' 0 0", "5",
     "L=A*2@60000 T=5@200000"},
    /* busy, and in line */
    {HASH, B_HAS, TO_TAKE, "{ 0 20000 0 0 -1 B * }", SAME},
    {HASH, B_HAS, TO_TAKE BY("b1"), "{ 0 20000 now 0 0 1 }",
     B_HAS " S=A:now@6000 I=A:60000:f:b1,b1:6000:7@6000 Q=b1:now@6000"},
    {HASH, B_HAS " S=X:100@3000 I=X:60000:f:b2,b2:2000:7@3000",
     TO_TAKE BY("b1"), "{ 0 20000 now 0 1 1 }",
     B_HAS " S=X:100,A:now@6000 I=X:60000:f:b2,b2:2000:7,A:60000:f:b1,"
           "b1:6000:7@6000 Q=b1:now@6000"},
    /* behind the last one, whatever the clock says */
    {HASH, B_HAS " S=X:1900000000000000@3000 I=X:60000:f:b2,b2:2000:7@3000",
     TO_TAKE BY("b1"), "{ 0 20000 1900000000000001 0 1 1 }",
     B_HAS " S=X:1900000000000000,A:1900000000000001@6000 "
           "I=X:60000:f:b2,b2:2000:7,A:60000:f:b1,b1:6000:7@6000 "
           "Q=b1:1900000000000001@6000"},
    /* clients that are gone */
    {HASH, B_HAS " I=d1:-1:7@3000 Q=d1:50@3000", TO_TAKE BY("b1"),
     "{ 0 20000 now 0 0 1 }",
     B_HAS " S=A:now@6000 I=A:60000:f:b1,b1:6000:7@6000 Q=b1:now@6000"},
    {HASH, B_STANDS, TO_TAKE, "{ 0 3000 0 0 -1 B * }", B_IS_LET_IN, GRANT},
    {HASH, "S=A:100,B:200@3000 I=A:60000:f:b1,B:60000:f:b1,b1:2000:7@3000",
     TO_TAKE BY("b1"), "token",
     HAS " S=B:200@6000 I=B:60000:f:b1,b1:6000:7@6000"},
    {HASH, "S=X:100@3000", TO_TAKE, "token", HAS},
    {HASH, "", TO_TAKE, "!OOM", SAME, NULL, OOM},
    {HASH, "", TO_TAKE, "!READONLY", SAME, NULL, READONLY},
    {HASH, "L=?text", TO_TAKE, "!WRONGTYPE", SAME},
};
OF_HASH(taking_by_a_fair_handle, taking)

static const row ending[] = {
    {HASH, A_HAS, END, "1", "T=5@200000", "R<0"},
    {HASH, A_HAS, END " 0 0 SPUBLISH", "1", "T=5@200000", "sharded R<0"},
    {HASH, A_HAS, "fair/release 6 L Q U T S I A ''", "1", "T=5@200000"},
    {HASH, A_HAS, END " 0 60000", "1", "T=5@200000 U=@60000", "R<0"},
    {HASH, A_HAS, END " 0 60000", "11", "T=5@200000", "R<0", OOM},
    {HASH, A_HAS " Q=b1:100,b2:200@3000", END, "2", "T=5@200000 Q=b2:200@3000",
     "b1<L R<0"},
    {HASH, "L=A*3@20000", END " 2 0", "1", "L=A*2@20000"},
    {HASH, "L=A*3@20000 Q=b1:100@3000", END " 2 60000", "1",
     "L=A*2@20000 Q=b1:100@3000 U=@60000"},
    /* it was not held */
    {HASH, "", END, "0", SAME},
    {HASH, "Q=b1:100@3000", END, "0", SAME},
    {HASH, B_HAS " Q=b1:100@3000", END, "0", SAME},
    {HASH, B_HAS, END " 2 60000", "0", B_HAS " U=@60000"},
    {HASH, "", END " 0 60000", "10", SAME, NULL, OOM},
    /* who stands is let in */
    {HASH, A_HAS B_STANDS, END, "2", B_IS_LET_IN, GRANT},
    {HASH, A_HAS " S=B:100@3000 I=B:900:f:b1,b1:2000:7@3000", END, "2",
     "L=B@900 T=" NOW "@300000 I=b1:2000:7@3000", "b1<grant:B:7:" NOW ":900:L"},
    {HASH, A_HAS " S=B:100@3000 I=B:2999:f:b1,b1:2000:7@3000", END, "2",
     "L=B@2999 T=" NOW "@300000 I=b1:2000:7@3000",
     "b1<grant:B:7:" NOW ":2999:L"},
    {HASH, A_HAS B_STANDS " Q=b1:100@3000", END, "2",
     B_IS_LET_IN " Q=b1:100@3000", GRANT},
    {HASH, A_HAS " S=B:100@3000 I=B:60000:f:d1,d1:2000:7@3000", END, "1",
     "T=" NOW "@300000", "R<0"},
    {HASH, A_HAS " S=B:100@3000 I=B:60000:f:d1,d1:2000:7@3000 Q=b1:50@3000",
     END, "2", "T=" NOW "@300000", "b1<L R<0"},
    {HASH, A_HAS " S=B:100@3000 I=B:60000:f:d1,d1:2000:7-@3000", END, "2",
     "L=B@3000 T=" NOW "@300000 I=d1:2000:7-@3000"},
    {HASH, A_HAS " S=B:100@3000 I=B:60000:f:d1,d1:5000:7-@3000", END, "2",
     "L=B@3000 T=" NOW "@300000 I=d1:3000:7-@3000"},
    {HASH, A_HAS " S=B:100@3000 I=B:60000:w:b1,b1:2000:7@3000", END, "1",
     "T=5@200000 S=B:100@3000 I=B:60000:w:b1,b1:2000:7@3000", "R<0"},
    /* who gives up */
    {HASH, B_HAS " S=A:100@3000 I=A:60000:f:b1,b1:2000:7@3000", END, "0",
     B_HAS " I=b1:2000:7@3000"},
    {HASH, "S=A:50,B:100@3000 I=A:60000:f:b1,B:60000:f:b1,b1:2000:7@3000", END,
     "0", B_IS_LET_IN, GRANT},
    {HASH, "L=?text S=A:50,B:100@3000 I=A:60000:f:b1,B:60000:f:b1@3000", END,
     "!WRONGTYPE", "L=?text S=B:100@3000 I=B:60000:f:b1@3000"},
    {HASH, A_HAS, END " x 0", "!ERR rlock: bad level", SAME},
};
OF_HASH(ending_by_a_fair_handle, ending)

#define SURVEY         "survey 5 L Q T S I"
#define WAITS          "waits 5 L Q W S I"
#define SURVEY_OF(key) "survey 6 L Q T S I " key
#define WAITS_OF(key)  "waits 6 L Q W S I " key

static const row telling[] = {
    {HASH, "", SURVEY, "{ now 0 '' 0 -2 0 '' }", SAME},
    {HASH, A_HAS B_STANDS, SURVEY, "{ now 1 A 1 20000 1 5 }", SAME},
    {HASH, A_HAS B_STANDS " Q=b1:100,b2:200@3000", SURVEY,
     "{ now 1 A 1 20000 2 5 }", SAME},
    {HASH, A_HAS " I=b1:2000:7@3000 Q=b1:100@3000", SURVEY,
     "{ now 1 A 1 20000 0 5 }", SAME},
    {HASH, A_HAS " S=B:100@3000 I=B:60000:f:b1,b1:-1:7@3000", SURVEY,
     "{ now 1 A 1 20000 0 5 }", SAME},
    {HASH, A_HAS " S=B:100@3000 I=B:60000:f:b1,b1:0:7@3000", SURVEY,
     "{ now 1 A 1 20000 1 5 }", SAME},
    {HASH, A_HAS " S=B:100,X:200@3000 I=B:60000:f:b1,X:60000:f:b1,b1:2000:7@9",
     SURVEY, "{ now 1 A 1 20000 1 5 }", SAME},
    {HASH,
     A_HAS " S=B:100,X:200@3000 "
           "I=B:60000:f:b1,X:60000:f:b2,b1:2000:7,b2:2000:7@9",
     SURVEY, "{ now 1 A 1 20000 2 5 }", SAME},
    {HASH, "L=read,A:2,B:1@20000", SURVEY, "{ now 3 A read_2 20000 0 '' }",
     SAME},
    {HASH, "L=write,Aw:1@20000", SURVEY, "{ now 2 A write_1 20000 0 '' }",
     SAME},
    {HASH, "L=?3 P=A1:20000,A2:20000,B1:30000", SURVEY_OF("P"),
     "{ now 2 A permits_2_3 20000 0 '' }", SAME},
    {HASH, "L=?3 P=X1:0,B1:30000", SURVEY_OF("P"),
     "{ now 1 B permits_1_4 30000 0 '' }", SAME},
    {HASH, "L=?0" B_STANDS, SURVEY_OF("P"), "{ now 0 '' permits_0_0 -1 1 '' }",
     SAME},
    {HASH, "L=?3 P=!", SURVEY_OF("P"), "{ now -1 3 1 -1 0 '' }", SAME},
    {HASH, "L=?3 P=B1:30000", SURVEY_OF("P"), "!can't run", SAME, NULL,
     "-zcount"},
    {HASH, A_HAS, SURVEY, "!can't run", SAME, NULL, "-zrange"},
    {HASH, A_HAS B_STANDS, SURVEY, "!can't run", SAME, NULL, "-hget"},
    /* each of them */
    {HASH, A_HAS B_STANDS, WAITS, "{ now 1 A 1 20000 b1 100 B 0 f }", SAME},
    {HASH, A_HAS B_STANDS " Q=b1:100,b2:200@3000", WAITS,
     "{ now 1 A 1 20000 b1 100 B 0 f b2 200 '' -1 '' }", SAME},
    {HASH, A_HAS B_STANDS " Q=b1:100@3000 W=b1:100:X@3000", WAITS,
     "{ now 1 A 1 20000 b1 100 B 0 f b1 100 X -1 '' }", SAME},
    {HASH, A_HAS " S=B:100@3000 I=B:60000:f:b1,b1:-1:7@3000", WAITS,
     "{ now 1 A 1 20000 }", SAME},
    {HASH, "L=read,A:2,B:1@20000 E=B:-1,A:5000@9000", WAITS_OF("E"),
     "{ now 1 A 2 5000 }", SAME},
    {HASH, "L=read,A:2,B:1@20000 E=B:0,A:5000@9000", WAITS_OF("E"),
     "{ now 2 A 2 5000 B 1 0 }", SAME},
    {HASH, "L=write,Aw:1@20000 S=B:100@3000 I=B:60000:r:b1,b1:2000:7@3000",
     WAITS, "r", SAME},
    {HASH, "L=write,Aw:1@20000 S=B:100@3000 I=B:60000:r:b1,b1:2000:7@3000",
     WAITS_OF("E"), "{ now 1 A 1 20000 b1 100 B 0 r }", SAME},
    {HASH, "L=?3 P=A1:20000,A2:20000,B1:30000", WAITS_OF("P"),
     "{ now 2 A 2 20000 B 1 30000 }", SAME},
    {HASH, A_HAS, WAITS, "!can't run", SAME, NULL, "-zrange"},
    {HASH, A_HAS B_STANDS, WAITS, "!can't run", SAME, NULL, "-hget"},
};
OF_HASH(telling_of_a_line, telling)
