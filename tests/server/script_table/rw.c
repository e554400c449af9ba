/* acquire and release of both sides of a read-write lock. */
#include "table.h"

#define TO_READ    "read/acquire 7 L T U S I E M A 60000"
#define TO_WRITE   "write/acquire 6 L T U S I E A 60000"
#define BY(bell)   " 1 " bell " 0 7"
#define TOO(field) " 1 '' 0 0 " field
#define B_TO_READ  "read/acquire 7 L T V S I E O B 60000"
#define B_TO_WRITE "write/acquire 6 L T V S I E B 60000"
#define READS      "L=read,A:1@60000 T=now@300000 E=A:60000@3660000 M=1@60000"
#define WRITES     "L=write,Aw:1@60000 T=now@300000"
#define B_READS    "L=read,B:1@20000 T=5@200000 E=B:20000@3620000 O=1@20000"
#define B_WRITES   "L=write,Bw:1@20000 T=5@200000"
#define X_IN_LINE  " S=X:100@3000 I=X:60000:w:b1,b1:2000:7@3000"
#define BUSY(who)  "{ 0 20000 0 0 -1 " who " -1 }"

static const row taking[] = {
    {HASH, "", TO_READ, "token", READS},
    {HASH, "", TO_WRITE, "token", WRITES},
    {HASH, "T=5@200000", TO_READ, "token", READS},
    {HASH, "T=2900000000000000@9000", TO_WRITE, "2900000000000001",
     "L=write,Aw:1@60000 T=2900000000000001@300000"},
    {HASH, "", TO_READ BY("b1"), "token", READS},
    {HASH, "", TO_WRITE BY("b1"), "token", WRITES},
    {HASH, "", "read/acquire 7 L T U S I E M A 4000000", "token",
     "L=read,A:1@4000000 T=now@4000000 E=A:4000000@7600000 M=1@4000000"},
    {HASH, "", "write/acquire 6 L T U S I E A 4000000", "token",
     "L=write,Aw:1@4000000 T=now@4000000"},
    {HASH, "", "write/acquire 6 L T U S I E A 200000", "token",
     "L=write,Aw:1@200000 T=now@400000"},
    {HASH, "", "read/acquire 7 L T U S I E M A 1000000000000000", "token",
     "L=read,A:1@1000000000000000 T=now@1000000000000000 "
     "E=A:1000000000000000@1000000003600000 M=1@1000000000000000"},
    {HASH, "", "write/acquire 6 L T U S I E A 1000000000000000", "token",
     "L=write,Aw:1@1000000000000000 T=now@1000000000000000"},
    /* leases that were left */
    {HASH, "E=B:5000@9000", TO_READ, "token", READS},
    {HASH, "E=B:5000@9000", TO_WRITE, "token", WRITES},
    {HASH, "L=read,B:1@20000 T=5@200000 E=B:-1@3620000", TO_WRITE, "token",
     WRITES},
    {HASH, "L=read,B:1@20000 T=5@200000 E=B:-1@3620000", TO_READ, "5",
     "L=read,B:1,A:1@60000 T=5@300000 E=B:-1,A:60000@3620000 M=1@60000"},
    {HASH, "", TO_WRITE " 2 '' 0 0", "{ -1 }", SAME},
    {HASH, "U=@50000", TO_READ, "{ -2 }", SAME},
    {HASH, "U=@50000", TO_WRITE " 2 b1 0 0", "{ -2 }", SAME},
    {HASH, "", TO_WRITE, "!", "T=now@300000", NULL, "-pexpire"},
    {HASH, "", TO_READ, "!OOM", SAME, NULL, OOM},
    {HASH, "", TO_WRITE, "!OOM", SAME, NULL, OOM},
    {HASH, "", TO_READ, "!READONLY", SAME, NULL, READONLY},
    {HASH, "", TO_WRITE, "!READONLY", SAME, NULL, READONLY},
    /* what is no such lock */
    {HASH, "L=A@20000", TO_READ, "!WRONGTYPE the hash is no", SAME},
    {HASH, "L=B@20000", TO_WRITE BY("b1"), "!WRONGTYPE the hash is no", SAME},
    {HASH, "L=readx,A:1@20000", TO_READ, "!WRONGTYPE the hash is no", SAME},
    {HASH, "L=!", TO_READ, "!WRONGTYPE", SAME},
    {HASH, "L=?text", TO_WRITE, "!WRONGTYPE", SAME},
    {HASH, "", "read/acquire 7 L T U S I E M A 0", "!ERR rlock: bad", SAME},
};
OF_HASH(taking_a_side, taking)

static const row beside[] = {
    {HASH, B_READS, TO_READ, "5",
     "L=read,B:1,A:1@60000 T=5@300000 E=B:20000,A:60000@3620000 O=1@20000 "
     "M=1@60000"},
    {HASH, "L=read,B:1@90000 T=5@400000 E=B:90000@3690000", TO_READ, "5",
     "L=read,B:1,A:1@90000 T=5@400000 E=A:60000,B:90000@3690000 M=1@60000"},
    {HASH, "L=read,B:1@20000 E=B:20000@3620000", TO_READ, "token",
     "L=read,B:1,A:1@60000 T=now@300000 E=B:20000,A:60000@3620000 M=1@60000"},
    {HASH, "L=read,B:1@20000 T=x@9000 E=B:20000@3620000", TO_READ, "token",
     "L=read,B:1,A:1@60000 T=now@300000 E=B:20000,A:60000@3620000 M=1@60000"},
    {HASH, B_READS, TO_READ BY("b1"), "5",
     "L=read,B:1,A:1@60000 T=5@300000 E=B:20000,A:60000@3620000 O=1@20000 "
     "M=1@60000 I=b1:6000:7@6000"},
    /* busy */
    {HASH, B_READS, TO_WRITE, BUSY("B"), SAME},
    {HASH, B_READS, TO_READ " 2 '' 0 0", "{ -1 }", SAME},
    {HASH, B_WRITES, TO_READ, "{ 0 20000 0 0 -1 B * }", SAME},
    {HASH, "L=write,Bw:1@20000 T=now-7000@200000", TO_WRITE,
     "{ 0 20000 0 0 -1 B 7000 }", SAME},
    {HASH, "L=write,Bw:1 T=5@200000", TO_WRITE, "{ 0 -1 0 0 -1 B * }", SAME},
    {HASH, "L=read,B:1 T=5@200000 E=B:20000@3620000", TO_WRITE, BUSY("B"),
     SAME},
    {HASH, "L=read,B:1,J:1@50000 T=5@200000 E=B:20000@3620000", TO_WRITE,
     "{ 0 50000 0 0 -1 B -1 }", SAME},
    {HASH, "L=read,B:1@20000 T=5@200000 E=B:10000,X:50000@3620000", TO_WRITE,
     BUSY("B"), SAME},
    {HASH, "L=read,B:1@50000 T=5@200000 E=B:20000@3620000", TO_WRITE, BUSY("B"),
     SAME},
    {HASH, "L=read,B:1@50000 T=5@200000 E=B:0@3620000", TO_WRITE,
     "{ 0 0 0 0 -1 B -1 }", SAME},
    {HASH, "L=read,B:1@20000 T=5@200000 E=B:20000@3620000" X_IN_LINE, TO_READ,
     BUSY("B"), SAME},
    /* in line */
    {HASH, B_READS, TO_WRITE BY("b1"), "{ 0 20000 now 0 0 1 }",
     B_READS " S=A:now@6000 I=A:60000:w:b1,b1:6000:7@6000"},
    {HASH, B_WRITES, TO_READ BY("b1"), "{ 0 20000 now 0 0 1 }",
     B_WRITES " S=A:now@6000 I=A:60000:r:b1,b1:6000:7@6000 M=1@30000"},
    {HASH, B_READS X_IN_LINE, TO_READ BY("b2"), "{ 0 20000 now 0 1 1 }",
     B_READS " S=X:100,A:now@6000 I=X:60000:w:b1,b1:2000:7,"
             "A:60000:r:b2,b2:6000:7@6000 M=1@30000"},
    {HASH, B_READS X_IN_LINE, TO_WRITE BY("b1"), "{ 0 20000 now 0 1 0 }",
     B_READS " S=X:100,A:now@6000 I=X:60000:w:b1,b1:6000:7,"
             "A:60000:w:b1@6000"},
    {HASH, B_WRITES " S=A:100@3000 I=A:60000:r:b1,b1:2000:9@3000",
     TO_READ BY("b1"), "{ 0 20000 100 0 0 0 }",
     B_WRITES " S=A:100@6000 I=A:60000:r:b1,b1:6000:9@6000 M=1@30000"},
    {HASH, B_WRITES, TO_READ " 1 -b1 50 7", "{ 0 20000 50 0 0 1 }",
     B_WRITES " S=A:50@6000 I=A:60000:r:b1,b1:6000:7-@6000 M=1@30000"},
    /* first in line, or behind who is dead, or gone */
    {HASH, "S=A:100@3000 I=A:60000:r:b1,b1:2000:7@3000", TO_READ BY("b1"),
     "token", READS " I=b1:6000:7@6000"},
    {HASH, "S=A:100@3000 I=A:60000:w:b1,b1:2000:7@3000", TO_WRITE BY("b1"),
     "token", WRITES " I=b1:6000:7@6000"},
    {HASH, "S=X:100@3000 I=X:60000:w:b1@3000", TO_READ, "token", READS},
    {HASH, "S=X:100@3000 I=X:60000:w:b1,b1:-1:7@3000", TO_WRITE, "token",
     WRITES " I=b1:-1:7@3000"},
    {HASH, B_READS " S=X:100@3000", TO_READ, "5",
     "L=read,B:1,A:1@60000 T=5@300000 E=B:20000,A:60000@3620000 O=1@20000 "
     "M=1@60000"},
    {HASH, "S=B:100@3000 I=B:60000:r:b1,b1:2000:7@3000", TO_WRITE,
     "{ 0 3000 0 0 -1 B -1 }",
     "L=read,B:1@3000 T=now@300000 E=B:3000@3603000 I=b1:2000:7@3000",
     "b1<grant:B:7:1800000000000345:3000:L"},
    {HASH, "S=A:100,B:200@3000 I=A:60000:r:b1,B:900:r:b1,b1:2000:7@3000",
     TO_READ BY("b1"), "token",
     "L=read,A:1,B:1@60000 T=now@300000 E=B:900,A:60000@3660000 "
     "I=b1:6000:7@6000 M=1@60000",
     "b1<grant:B:7:1800000000000345:900:L"},
    {HASH, "S=B:100@3000 I=B:60000:f:b1,b1:2000:7@3000", TO_READ,
     "{ 0 0 0 0 -1 '' -1 }", SAME},
    {HASH, "S=A:100,B:200@3000 I=A:60000:w:b1,B:60000:w:b1,b1:2000:7@3000",
     TO_WRITE, "!", "S=B:200@3000 I=B:60000:w:b1,b1:2000:7@3000 T=now@300000",
     NULL, "-pexpire"},
    /* whose lease is over is taken out */
    {HASH, "L=read,B:1,X:1@20000 T=5@200000 E=B:-1,X:20000@3660000", TO_WRITE,
     BUSY("X"), "L=read,X:1@20000 T=5@200000 E=X:20000@3660000"},
    {HASH, "L=read,B:1,X:1@20000 T=5@200000 E=B:0,X:20000@3660000", TO_WRITE,
     BUSY("B"), SAME},
    {HASH, "L=write,B:1,Bw:1@20000 T=5@200000 E=Bw:-1,B:20000@3660000", TO_READ,
     "5",
     "L=read,B:1,A:1@60000 T=5@300000 E=B:20000,A:60000@3660000 M=1@60000"},
};
OF_HASH(asking_for_a_side_that_others_have, beside)

static const row once_more[] = {
    {HASH, "L=read,A:1@20000 T=5@200000 E=A:20000@3620000 M=1@20000", TO_READ,
     "5", "L=read,A:1@60000 T=5@300000 E=A:60000@3620000 M=1@60000"},
    {HASH, "L=read,A:1@20000 T=5@200000 E=A:20000@3620000 M=1@20000",
     TO_READ " 2 '' 0 0", "5",
     "L=read,A:2@60000 T=5@300000 E=A:60000@3620000 M=1@60000"},
    {HASH, "L=read,A:1@90000 T=5@400000 E=A:80000@3690000 M=1@80000", TO_READ,
     "5", SAME},
    {HASH, "L=read,A:1@20000 T=5@400000", TO_READ, "5",
     "L=read,A:1@60000 T=5@400000 E=A:60000@3660000 M=1@60000"},
    {HASH, "L=read,A:1@20000 E=A:20000@3620000", TO_READ, "token",
     "L=read,A:1@60000 T=now@300000 E=A:60000@3620000 M=1@60000"},
    {HASH, "L=read,A:1@20000 E=A:20000@3620000", TO_READ " 2 '' 0 0", "0",
     "L=read,A:2@60000 E=A:60000@3620000 M=1@60000"},
    {HASH, "L=write,Aw:1@20000 T=5@400000", TO_WRITE, "5",
     "L=write,Aw:1@60000 T=5@400000"},
    {HASH, "L=write,Aw:1@90000 T=5@400000", TO_WRITE " 3 '' 0 0", "5",
     "L=write,Aw:3@90000 T=5@400000"},
    {HASH, "L=write,Aw:1@20000", TO_WRITE, "token", WRITES},
    {HASH, "L=write,A:1,Aw:1@20000 T=5@400000 E=A:9000,Aw:20000@3620000",
     TO_WRITE, "5",
     "L=write,A:1,Aw:1@60000 T=5@400000 E=A:9000,Aw:60000@3620000"},
    {HASH, "L=write,Aw:1@20000 T=5@400000 U=@5000", TO_WRITE, "{ -2 }", SAME},
};
OF_HASH(taking_a_side_once_more, once_more)

static const row other_side[] = {
    /* who writes may read */
    {HASH, "L=write,Aw:1@20000 T=5@400000", B_TO_READ TOO("Aw"), "5",
     "L=write,Aw:1,B:1@60000 T=5@400000 E=Aw:20000,B:60000@3620000 O=1@60000"},
    {HASH, "L=write,Aw:1@90000 T=5@400000 E=Aw:9000@3690000",
     B_TO_READ TOO("Aw"), "5",
     "L=write,Aw:1,B:1@90000 T=5@400000 E=Aw:9000,B:60000@3690000 O=1@60000"},
    {HASH, "L=write,Aw:1 T=5@400000", B_TO_READ TOO("Aw"), "5",
     "L=write,Aw:1,B:1@60000 T=5@400000 E=B:60000,Aw:3600000@7200000 "
     "O=1@60000"},
    {HASH, "L=write,Xw:1@20000 T=5@200000", B_TO_READ TOO("Aw"),
     "{ 0 20000 0 0 -1 X * }", SAME},
    /* who alone reads may write */
    {HASH, "L=read,A:1@20000 T=5@200000 E=A:20000@3620000 M=1@20000",
     B_TO_WRITE TOO("A"), "token",
     "L=write,A:1,Bw:1@60000 T=now@300000 E=A:20000,Bw:60000@3620000 "
     "M=1@20000"},
    {HASH, "L=read,A:1@400000 T=5@200000 E=A:400000@4000000",
     B_TO_WRITE TOO("A"), "token",
     "L=write,A:1,Bw:1@400000 T=now@800000 E=Bw:60000,A:400000@4000000"},
    {HASH, "L=read,A:1@20000 T=5@200000 E=A:20000@3620000" X_IN_LINE,
     B_TO_WRITE TOO("A"), "token",
     "L=write,A:1,Bw:1@60000 T=now@300000 "
     "E=A:20000,Bw:60000@3620000" X_IN_LINE},
    {HASH, "L=read,A:1,X:1@20000 T=5@200000 E=A:10000,X:20000@3620000",
     B_TO_WRITE TOO("A"), "{ -3 }", SAME},
    {HASH, "L=read,A:1,X:1@20000 T=5@200000 E=X:-1,A:20000@3620000",
     B_TO_WRITE TOO("A"), "token",
     "L=write,A:1,Bw:1@60000 T=now@300000 E=A:20000,Bw:60000@3620000"},
    {HASH, "L=read,A:1,X:1@20000 T=5@200000 E=A:-1,X:20000@3620000",
     B_TO_WRITE TOO("A"), BUSY("X"),
     "L=read,X:1@20000 T=5@200000 E=X:20000@3620000"},
    {HASH, "L=read,A:1@20000 T=5@200000 E=A:-1@3620000", B_TO_WRITE TOO("A"),
     "token", "L=write,Bw:1@60000 T=now@300000"},
};
OF_HASH(taking_the_other_side, other_side)

#define END_READ       "read/release 7 L T U S I E M A C"
#define END_WRITE      "write/release 6 L T U S I E A C"
#define A_READS        "L=read,A:1@20000 T=5@200000 E=A:20000@3620000 M=1@20000"
#define A_WRITES       "L=write,Aw:1@20000 T=5@200000"
#define B_STANDS(what) " S=B:100@3000 I=B:60000:" what ":b1,b1:2000:7@3000"
#define GRANT(token)   "b1<grant:B:7:" token ":3000:L"
#define NOW            "1800000000000345"

static const row ending[] = {
    {HASH, A_READS, END_READ, "1", "T=5@200000", "C<0"},
    {HASH, A_WRITES, END_WRITE, "1", "T=5@200000", "C<1"},
    {HASH, A_WRITES " E=B:5000@9000", END_WRITE, "1", "T=5@200000", "C<1"},
    {HASH, A_READS, "read/release 7 L T U S I E M A ''", "1", "T=5@200000"},
    {HASH, A_READS, END_READ " 0 0 SPUBLISH", "1", "T=5@200000", "sharded C<0"},
    {HASH, A_WRITES, END_WRITE " 0 0 SPUBLISH", "1", "T=5@200000",
     "sharded C<1"},
    {HASH, A_READS, END_READ " 0 60000", "1", "T=5@200000 U=@60000", "C<0"},
    {HASH, A_READS, END_READ " 0 60000", "11", "T=5@200000", "C<0", OOM},
    /* it was not held */
    {HASH, "", END_READ, "0", SAME},
    {HASH, "", END_WRITE " 0 60000", "0", "U=@60000"},
    {HASH, "", END_WRITE " 0 60000", "10", SAME, NULL, OOM},
    {HASH, B_READS " M=1@20000", END_READ, "0", B_READS},
    {HASH, "M=1@20000", END_READ, "0", ""},
    {HASH, B_WRITES, END_WRITE, "0", SAME},
    {HASH, A_READS, END_WRITE, "0", SAME},
    {HASH, A_WRITES, END_READ, "0", SAME},
    /* others have it, too */
    {HASH,
     "L=read,A:1,B:1@20000 T=5@200000 E=A:10000,B:20000@3620000 M=1@10000",
     END_READ, "1", "L=read,B:1@20000 T=5@200000 E=B:20000@3620000"},
    {HASH, "L=write,A:1,Aw:1@20000 T=5@200000 E=Aw:10000,A:20000@3620000",
     END_WRITE, "1", "L=read,A:1@20000 T=5@200000 E=A:20000@3620000", "C<1"},
    {HASH,
     "L=write,A:1,Bw:1@20000 T=5@200000 E=A:10000,Bw:20000@3620000 M=1@10000",
     END_READ, "1", "L=write,Bw:1@20000 T=5@200000 E=Bw:20000@3620000"},
    /* and who comes next finds those whose lease is over */
    {HASH, "L=read,A:1,B:1@20000 T=5@200000 E=B:-1,A:10000@3620000 M=1@10000",
     END_READ, "1", "L=read,B:1@20000 T=5@200000 E=B:-1@3620000"},
    /* a level less */
    {HASH, "L=read,A:2@20000 T=5@200000 E=A:20000@3620000 M=1@20000",
     END_READ " 1 0", "1", A_READS},
    {HASH, "L=write,Aw:3@20000", END_WRITE " 2 0", "1", "L=write,Aw:2@20000"},
    {HASH, "L=write,Aw:3@20000", END_WRITE " 2 60000", "1",
     "L=write,Aw:2@20000 U=@60000"},
    {HASH, B_READS, END_READ " 1 0", "0", SAME},
    {HASH, B_READS, END_READ " 1 60000", "0", B_READS " U=@60000"},
    /* who stands is let in */
    {HASH, A_WRITES B_STANDS("r"), END_WRITE, "2",
     "L=read,B:1@3000 T=" NOW "@300000 E=B:3000@3603000 I=b1:2000:7@3000",
     GRANT(NOW) " C<1"},
    {HASH, A_WRITES B_STANDS("w"), END_WRITE, "2",
     "L=write,Bw:1@3000 T=" NOW "@300000 I=b1:2000:7@3000", GRANT(NOW)},
    {HASH, A_READS B_STANDS("w"), END_READ, "2",
     "L=write,Bw:1@3000 T=" NOW "@300000 I=b1:2000:7@3000", GRANT(NOW)},
    {HASH,
     "L=write,A:1,Aw:1@20000 T=5@400000 E=Aw:10000,A:20000@3620000" B_STANDS(
         "r"),
     END_WRITE, "2",
     "L=read,A:1,B:1@20000 T=5@400000 E=B:3000,A:20000@3620000 "
     "I=b1:2000:7@3000",
     GRANT("5") " C<1"},
    {HASH,
     "L=read,A:1,X:1@20000 T=5@200000 E=A:9000,X:20000@3620000" B_STANDS("w"),
     END_READ, "2",
     "L=read,X:1@20000 T=5@200000 E=X:20000@3620000" B_STANDS("w")},
    {HASH,
     "L=read,A:1,X:1@20000 T=5@200000 E=X:-1,A:9000@3620000" B_STANDS("w"),
     END_READ, "2", "L=write,Bw:1@3000 T=" NOW "@300000 I=b1:2000:7@3000",
     GRANT(NOW)},
    {HASH, A_WRITES B_STANDS("r"), END_WRITE " 0 0 SPUBLISH", "2",
     "L=read,B:1@3000 T=" NOW "@300000 E=B:3000@3603000 I=b1:2000:7@3000",
     GRANT(NOW) " sharded C<1"},
    {HASH, A_WRITES B_STANDS("f"), END_WRITE, "2", "T=5@200000" B_STANDS("f"),
     "C<1"},
    /* or has gone */
    {HASH, A_WRITES " S=B:100@3000 I=B:60000:r:d1,d1:2000:7@3000", END_WRITE,
     "1", "T=" NOW "@300000", "C<1"},
    {HASH, A_WRITES " S=B:100@3000 I=B:60000:r:b1,b1:-1:7@3000", END_WRITE, "1",
     "T=5@200000 I=b1:-1:7@3000", "C<1"},
    {HASH,
     A_WRITES " S=B:100,X:200@3000 "
              "I=B:60000:r:d1,d1:2000:7,X:60000:w:b1,b1:2000:8@3000",
     END_WRITE, "2",
     "L=write,Xw:1@3000 T=1800000000000346@300000 I=b1:2000:8@3000",
     "b1<grant:X:8:1800000000000346:3000:L"},
    {HASH,
     "L=read,X:1@20000 T=5@400000 E=X:20000@3620000 S=A:100,B:200@3000 "
     "I=A:60000:w:b1,B:60000:r:d1,d1:2000:7@3000",
     END_WRITE, "0", "L=read,X:1@20000 T=5@400000 E=X:20000@3620000"},
    /* who gives up, in line */
    {HASH,
     "L=write,Xw:1@20000 S=A:100,B:200@3000 I=A:60000:r:b1,"
     "B:60000:r:b1,b1:2000:7@3000",
     END_READ, "0",
     "L=write,Xw:1@20000 S=B:200@3000 I=B:60000:r:b1,b1:2000:7@3000"},
    {HASH,
     "L=read,X:1@20000 T=5@400000 E=X:20000@3620000 S=A:100,B:200@3000 "
     "I=A:60000:w:b1,B:60000:r:b1,b1:2000:7@3000",
     END_WRITE, "0",
     "L=read,X:1,B:1@20000 T=5@400000 E=B:3000,X:20000@3620000 "
     "I=b1:2000:7@3000",
     GRANT("5")},
    /* what is no such lock */
    {HASH, "L=?text S=A:100,B:200@3000 I=A:60000:r:b1,B:60000:r:b1@3000",
     END_READ, "!WRONGTYPE", "L=?text S=B:200@3000 I=B:60000:r:b1@3000"},
    {HASH, "L=X@20000 S=A:100,B:200@3000 I=A:60000:r:b1,B:60000:r:b1@3000",
     END_READ, "0", "L=X@20000 S=B:200@3000 I=B:60000:r:b1@3000"},
    {HASH, A_READS, END_READ " x 0", "!ERR rlock: bad level", SAME},
};
OF_HASH(ending_a_side, ending)
