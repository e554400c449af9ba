/* What prolongs, ends from outside, or looks at a side of a read-write lock. */
#include "table.h"

#define A_READS  "L=read,A:1@20000 T=5@200000 E=A:20000@3620000 M=1@20000"
#define A_WRITES "L=write,Aw:1@20000 T=5@200000"
/* B writes, and A reads. */
#define BOTH "L=write,A:1,Bw:1@20000 T=9@200000 E=A:10000,Bw:20000@3620000"

#define RENEW_READ(ms)  "read/renew 4 L T E M A " ms
#define RENEW_WRITE(ms) "write/renew 3 L T E A " ms

static const row renewing[] = {
    {HASH, A_READS, RENEW_READ("60000"), "1",
     "L=read,A:1@60000 T=5@300000 E=A:60000@3620000 M=1@60000"},
    {HASH, A_READS, RENEW_READ("60000 5"), "1",
     "L=read,A:1@60000 T=5@300000 E=A:60000@3620000 M=1@60000"},
    {HASH, A_WRITES, RENEW_WRITE("60000"), "1",
     "L=write,Aw:1@60000 T=5@300000"},
    {HASH, A_READS, RENEW_READ("4000000"), "1",
     "L=read,A:1@4000000 T=5@4000000 E=A:4000000@7600000 M=1@4000000"},
    {HASH, "L=read,A:1@20000 T=5@400000 E=A:20000@3620000", RENEW_READ("60000"),
     "1", "L=read,A:1@60000 T=5@400000 E=A:60000@3620000 M=1@60000"},
    /* never shorter */
    {HASH, A_READS, RENEW_READ("1000"), "1",
     "L=read,A:1@20000 T=5@300000 E=A:20000@3620000 M=1@20000"},
    {HASH, "L=read,A:1@20000 T=5@400000 E=A:90000@3690000 M=1@20000",
     RENEW_READ("60000"), "1",
     "L=read,A:1@90000 T=5@400000 E=A:90000@3690000 M=1@90000"},
    {HASH, A_WRITES, RENEW_WRITE("1000"), "1", "L=write,Aw:1@20000 T=5@300000"},
    /* a lease of its own that is not there, or of who writes and reads */
    {HASH, "L=read,A:1@20000 T=5@400000", RENEW_READ("60000"), "1",
     "L=read,A:1@60000 T=5@400000 E=A:60000@3660000 M=1@60000"},
    {HASH, "L=write,A:1,Aw:1@20000 T=5@400000 E=A:9000,Aw:10000@3620000",
     RENEW_WRITE("60000"), "1",
     "L=write,A:1,Aw:1@60000 T=5@400000 E=A:9000,Aw:60000@3620000"},
    {HASH, "L=write,A:1,Aw:1@20000 T=5@400000 E=A:9000,Aw:90000@3690000",
     RENEW_WRITE("60000"), "1",
     "L=write,A:1,Aw:1@90000 T=5@400000 E=A:9000,Aw:90000@3690000"},
    /* the leases live a quarter of an hour longer, or are given an hour more */
    {HASH, "L=read,A:1@20000 T=5@400000 E=A:20000@2760000 M=1@20000",
     RENEW_READ("60000"), "1",
     "L=read,A:1@60000 T=5@400000 E=A:60000@2760000 M=1@60000"},
    {HASH, "L=read,A:1@20000 T=5@400000 E=A:20000@2759999 M=1@20000",
     RENEW_READ("60000"), "1",
     "L=read,A:1@60000 T=5@400000 E=A:60000@3660000 M=1@60000"},
    /* 12 ms behind the begin of ten minutes, or 13 */
    {STRING, "L=read,A:1@20000 T=5@400000 E=A:5@9000 M=1@20000",
     RENEW_READ("12"), "1", "L=read,A:1@20000 T=5@400000 E=A:12@9000 M=1@12"},
    {STRING, "L=read,A:1@20000 T=5@400000 E=A:5@9000 M=1@20000",
     RENEW_READ("13"), "1",
     "L=read,A:1@20000 T=5@400000 E=A:13@3600013 M=1@13"},
    /* only looking */
    {HASH, A_READS, RENEW_READ("0"), "1", SAME},
    {HASH, A_WRITES, RENEW_WRITE("0"), "1", SAME},
    {HASH, A_READS, "read/renew 4 L T E O B 0", "0", SAME},
    {HASH, A_READS, RENEW_READ("0 4"), "0", SAME},
    /* not held, or there has been a later grant */
    {HASH, A_READS, RENEW_WRITE("60000"), "0", SAME},
    {HASH, A_WRITES, RENEW_READ("60000"), "0", SAME},
    {HASH, "", RENEW_READ("60000"), "0", SAME},
    {HASH, A_READS, RENEW_READ("60000 4"), "0", SAME},
    {HASH, A_WRITES, RENEW_WRITE("60000 4"), "0", SAME},
    {HASH, A_WRITES, RENEW_WRITE("60000 6"), "1",
     "L=write,Aw:1@60000 T=5@300000"},
    {HASH, BOTH " M=1@9000", RENEW_READ("60000 5"), "1",
     "L=write,A:1,Bw:1@60000 T=9@300000 E=Bw:20000,A:60000@3620000 M=1@60000"},
    {HASH, BOTH, "write/renew 3 L T E B 60000 8", "0", SAME},
    {HASH, A_READS, RENEW_READ("60000 x"), "!ERR rlock: bad lease", SAME},
    {HASH, A_READS, RENEW_READ("-5"), "!ERR rlock: bad lease", SAME},
};
OF_KEPT(renewing_a_side, renewing)

#define EXTEND_READ(ms)  "read/extend 4 L T E M A " ms
#define EXTEND_WRITE(ms) "write/extend 3 L T E A " ms

static const row extending[] = {
    {HASH, A_READS, EXTEND_READ("60000"), "1",
     "L=read,A:1@60000 T=5@300000 E=A:60000@3620000 M=1@60000"},
    {HASH, A_READS, EXTEND_READ("1000"), "1",
     "L=read,A:1@1000 T=5@300000 E=A:1000@3620000 M=1@1000"},
    {HASH, A_WRITES, EXTEND_WRITE("60000 5"), "1",
     "L=write,Aw:1@60000 T=5@300000"},
    {HASH, A_WRITES, EXTEND_WRITE("1000"), "1", "L=write,Aw:1@1000 T=5@300000"},
    /* others keep the key */
    {HASH, "L=read,A:1,B:1@20000 T=5@400000 E=A:9000,B:20000@3620000 M=1@9000",
     EXTEND_READ("1000"), "1",
     "L=read,A:1,B:1@20000 T=5@400000 E=A:1000,B:20000@3620000 M=1@1000"},
    {HASH, "L=read,A:1,B:1@20000 T=5@400000 E=A:9000,B:20000@3620000 M=1@9000",
     EXTEND_READ("60000"), "1",
     "L=read,A:1,B:1@60000 T=5@400000 E=B:20000,A:60000@3620000 M=1@60000"},
    {HASH, "L=write,A:1,Aw:1@20000 T=5@400000 E=A:9000,Aw:20000@3620000",
     EXTEND_WRITE("1000"), "1",
     "L=write,A:1,Aw:1@20000 T=5@400000 E=Aw:1000,A:9000@3620000"},
    {HASH, "L=read,A:1@20000 T=5@400000", EXTEND_READ("60000"), "1",
     "L=read,A:1@60000 T=5@400000 E=A:60000@3660000 M=1@60000"},
    {HASH, A_READS, EXTEND_WRITE("60000"), "0", SAME},
    {HASH, A_READS, EXTEND_READ("60000 4"), "0", SAME},
    {HASH, A_WRITES, EXTEND_WRITE("60000 4"), "0", SAME},
    {HASH, BOTH " M=1@9000", EXTEND_READ("1000 5"), "1",
     "L=write,A:1,Bw:1@20000 T=9@300000 E=A:1000,Bw:20000@3620000 M=1@1000"},
    {HASH, A_READS, EXTEND_READ("0"), "!ERR rlock: bad lease", SAME},
};
OF_HASH(extending_a_side, extending)

static const row many[] = {
    {HASH, A_READS, "read/renew_many 4 L E M T 60000 A", "1",
     "L=read,A:1@60000 T=5@300000 E=A:60000@3620000 M=1@60000"},
    {HASH, A_READS, "read/renew_many 3 L E M 60000 A", "1",
     "L=read,A:1@60000 T=5@200000 E=A:60000@3620000 M=1@60000"},
    {HASH, A_READS, "read/renew_many 3 L E O 60000 B", "0", SAME},
    {HASH, A_READS, "read/renew_many 8 L L2 E E2 M O T T2 60000 A B", "10",
     "L=read,A:1@60000 T=5@300000 E=A:60000@3620000 M=1@60000"},
    {HASH, A_READS " G=?text", "read/renew_many 6 G L E2 E O M 60000 B A", "e1",
     "L=read,A:1@60000 T=5@200000 E=A:60000@3620000 M=1@60000 G=?text"},
    {HASH, A_WRITES, "write/renew_many 3 L E T 60000 A", "1",
     "L=write,Aw:1@60000 T=5@300000"},
    {HASH, A_WRITES " L2=write,Bw:1@20000 E2=Bw:9000@9000",
     "write/renew_many 4 L L2 E E2 60000 A B", "11",
     "L=write,Aw:1@60000 T=5@200000 L2=write,Bw:1@60000 E2=Bw:60000@3660000"},
    {HASH, A_READS, "read/renew_many 2 L E 60000 A", "!ERR rlock: bad", SAME},
    {HASH, A_READS, "read/renew_many 5 L E M T T 60000 A", "!ERR rlock: bad",
     SAME},
    {HASH, A_READS, "read/renew_many 3 L E M 0 A", "!ERR rlock: bad", SAME},
    {HASH, A_READS, "read/renew_many 3 L E M x A", "!ERR rlock: bad", SAME},
    {HASH, A_READS, "read/renew_many 3 L E M 1000000000000000 A", "1",
     "L=read,A:1@1000000000000000 T=5@200000 "
     "E=A:1000000000000000@1000000003600000 M=1@1000000000000000"},
    {HASH, A_READS, "read/renew_many 3 L E M 10000000000000000 A",
     "!ERR rlock: bad", SAME},
};
OF_HASH(renewing_sides_of_many, many)

#define FORCE_READ     "read/force_release 5 L T S I E C"
#define FORCE_WRITE    "write/force_release 5 L T S I E C"
#define B_STANDS(what) " S=B:100@3000 I=B:60000:" what ":b1,b1:2000:7@3000"
#define NOW            "1800000000000345"
#define GRANT(token)   "b1<grant:B:7:" token ":3000:L"

static const row forcing[] = {
    {HASH, "", FORCE_READ, "0", SAME},
    {HASH, "", FORCE_WRITE, "0", SAME},
    {HASH, A_READS, FORCE_READ, "1", "T=5@200000 M=1@20000", "C<1"},
    {HASH, A_READS, FORCE_READ " SPUBLISH", "1", "T=5@200000 M=1@20000",
     "sharded C<1"},
    {HASH, A_READS, FORCE_WRITE, "0", SAME},
    {HASH, "L=read,A:1,J:1@20000", FORCE_READ, "1", "", "C<1"},
    {HASH, A_WRITES, FORCE_WRITE, "1", "T=5@200000", "C<1"},
    {HASH, A_WRITES " E=B:9000@9000", FORCE_WRITE, "1", "T=5@200000", "C<1"},
    {HASH, A_WRITES, FORCE_READ, "0", SAME},
    /* both */
    {HASH, BOTH, FORCE_READ, "1",
     "L=write,Bw:1@20000 T=9@200000 E=Bw:20000@3620000"},
    {HASH, BOTH, FORCE_WRITE, "1",
     "L=read,A:1@20000 T=9@200000 E=A:10000@3620000", "C<1"},
    /* whose lease is over */
    {HASH, "L=read,A:1@20000 E=A:-1@9000", FORCE_READ, "0", ""},
    {HASH, "L=read,A:1,B:1@20000 E=A:-1,B:9000@9000", FORCE_WRITE, "0",
     "L=read,B:1@20000 E=B:9000@9000"},
    {HASH, "L=write,A:1,Aw:1@20000 E=Aw:-1,A:9000@9000", FORCE_WRITE, "0",
     "L=read,A:1@20000 E=A:9000@9000"},
    /* who stands is let in */
    {HASH, A_READS B_STANDS("w"), FORCE_READ, "1",
     "L=write,Bw:1@3000 T=" NOW "@300000 I=b1:2000:7@3000 M=1@20000",
     GRANT(NOW)},
    {HASH, A_WRITES B_STANDS("r"), FORCE_WRITE, "1",
     "L=read,B:1@3000 T=" NOW "@300000 E=B:3000@3603000 I=b1:2000:7@3000",
     GRANT(NOW) " C<1"},
    {HASH,
     "L=write,A:1,Aw:1@20000 T=5@400000 E=A:9000,Aw:20000@3620000" B_STANDS(
         "r"),
     FORCE_WRITE, "1",
     "L=read,A:1,B:1@20000 T=5@400000 E=B:3000,A:9000@3620000 I=b1:2000:7@3000",
     GRANT("5") " C<1"},
    {HASH, BOTH B_STANDS("r"), FORCE_READ, "1",
     "L=write,Bw:1@20000 T=9@200000 E=Bw:20000@3620000" B_STANDS("r")},
    /* what is no such lock */
    {HASH, "L=A@20000", FORCE_READ, "!WRONGTYPE the hash is no", SAME},
    {HASH, "L=readx,A:1@20000", FORCE_READ, "!WRONGTYPE the hash is no", SAME},
    {HASH, "L=read,F:1@20000", FORCE_READ, "!WRONGTYPE the hash is no", SAME},
    {HASH, "L=write,A:1,F:1@20000", FORCE_WRITE, "!WRONGTYPE the hash is no",
     SAME},
    {HASH, "L=!", FORCE_READ, "!WRONGTYPE", SAME},
    {HASH, "L=?text", FORCE_WRITE, "!WRONGTYPE", SAME},
};
OF_HASH(forcing_a_side, forcing)

static const row looking[] = {
    {HASH, "", "read/inspect 2 L E", "{ }", SAME},
    {HASH, "", "write/inspect 2 L E A", "{ }", SAME},
    {HASH, A_READS, "read/inspect 2 L E", "{ A 1 20000 }", SAME},
    {HASH, A_READS, "write/inspect 2 L E", "{ }", SAME},
    {HASH, A_WRITES, "write/inspect 2 L E", "{ A 1 20000 }", SAME},
    {HASH, A_WRITES, "write/inspect 2 L E A", "{ A 1 20000 }", SAME},
    {HASH, A_WRITES, "write/inspect 2 L E B", "{ A 1 20000 }", SAME},
    {HASH, A_WRITES, "read/inspect 2 L E A", "{ }", SAME},
    {HASH, "L=write,Aw:2", "write/inspect 2 L E", "{ A 2 -1 }", SAME},
    {HASH, BOTH, "read/inspect 2 L E", "{ A 1 10000 }", SAME},
    {HASH, BOTH, "write/inspect 2 L E", "{ B 1 20000 }", SAME},
    {HASH, "L=read,A:1,B:3@20000 E=A:5000,B:9000@9000", "read/inspect 2 L E B",
     "{ B 3 9000 }", SAME},
    {HASH, "L=read,A:1,B:3@20000 E=A:5000,B:9000@9000", "read/inspect 2 L E X",
     "{ A 1 5000 }", SAME},
    {HASH, "L=read,A:1,B:3@20000 E=A:5000,B:9000@9000",
     "read/inspect 2 L E mode", "{ A 1 5000 }", SAME},
    {HASH, "L=read,A:1@20000 E=A:50000@90000", "read/inspect 2 L E",
     "{ A 1 20000 }", SAME},
    {HASH, "L=read,A:1 E=A:50000@90000", "read/inspect 2 L E", "{ A 1 50000 }",
     SAME},
    {HASH, "L=read,A:1@20000 E=A:0@9000", "read/inspect 2 L E", "{ A 1 0 }",
     SAME},
    {HASH, "L=read,A:1,B:1@20000 E=A:-1,B:9000@9000", "read/inspect 2 L E A",
     "{ B 1 9000 }", SAME},
    {HASH, "L=read,A:1@20000 E=A:-1@9000", "read/inspect 2 L E", "{ }", SAME},
    {HASH, "L=read,A:12345678901234567890123456789012345@20000",
     "read/inspect 2 L E", "{ A 12345678901234567890123456789012 20000 }",
     SAME},
    {HASH, "L=A@20000", "read/inspect 2 L E", "!WRONGTYPE the hash is no",
     SAME},
    {HASH, "L=?text", "write/inspect 2 L E", "!WRONGTYPE", SAME},
};
OF_HASH(looking_at_a_side, looking)

#define STATE "rw/state 3 L S E"

static const row states[] = {
    {HASH, "", STATE, "{ 0 0 0 -2 }", SAME},
    {HASH, "S=B:100@3000", STATE, "{ 0 0 1 -2 }", SAME},
    {HASH, A_READS, STATE, "{ 1 1 0 20000 }", SAME},
    {HASH, A_WRITES B_STANDS("r"), STATE, "{ 2 1 1 20000 }", SAME},
    {HASH, BOTH, STATE, "{ 2 1 0 20000 }", SAME},
    {HASH, "L=read,A:1,B:1,J:1@20000 E=A:5000,B:9000@9000", STATE,
     "{ 1 3 0 20000 }", SAME},
    {HASH, "L=read,A:1,B:1@20000 E=A:5000,B:9000@9000", STATE, "{ 1 2 0 9000 }",
     SAME},
    {HASH, "L=read,A:1,B:1@20000 E=A:-1,B:9000@9000", STATE, "{ 1 1 0 9000 }",
     SAME},
    {HASH, "L=read,A:1,B:1@20000 E=A:0,B:9000@9000", STATE, "{ 1 2 0 9000 }",
     SAME},
    {HASH, "L=read,A:1@20000 E=A:-1@9000", STATE, "{ 0 0 0 -2 }", SAME},
    {HASH, "L=read,A:1@20000 E=X:-1,A:5000@9000", STATE, "{ 1 1 0 5000 }",
     SAME},
    {HASH, "L=write,A:1,Bw:1@20000 E=Bw:-1,A:5000@9000", STATE,
     "{ 1 1 0 5000 }", SAME},
    {HASH, "L=write,A:1,Bw:1@20000 E=A:-1,Bw:5000@9000", STATE,
     "{ 2 1 0 5000 }", SAME},
    {HASH, "L=write,Aw:1", STATE, "{ 2 1 0 -1 }", SAME},
    {HASH, "L=read,A:1 E=A:5000@9000", STATE, "{ 1 1 0 5000 }", SAME},
    {HASH, "L=A@20000", STATE, "!WRONGTYPE the hash is no", SAME},
    {HASH, "L=readx,A:1@20000", STATE, "!WRONGTYPE the hash is no", SAME},
    {HASH, "L=!", STATE, "!WRONGTYPE", SAME},
};
OF_HASH(telling_how_both_sides_are_had, states)

static const row dropping[] = {
    {HASH, A_READS, "read/drop 1 L A", "1",
     "T=5@200000 E=A:20000@3620000 M=1@20000"},
    {HASH, A_READS, "read/drop 1 L B", "0", SAME},
    {HASH, A_READS, "write/drop 1 L A", "0", SAME},
    {HASH, A_WRITES, "write/drop 1 L A", "1", "T=5@200000"},
    {HASH, BOTH, "write/drop 1 L B", "1",
     "L=read,A:1@20000 T=9@200000 E=A:10000,Bw:20000@3620000"},
    {HASH, BOTH, "read/drop 1 L A", "1",
     "L=write,Bw:1@20000 T=9@200000 E=A:10000,Bw:20000@3620000"},
    {HASH, "L=read,A:1,B:1@20000", "read/drop 1 L A", "1", "L=read,B:1@20000"},
    {HASH, "L=?text", "read/drop 1 L A", "!WRONGTYPE", SAME},
};
OF_HASH(dropping_a_side, dropping)

static const row guarding[] = {
    {HASH, A_READS, "read/guard 3 G L E word A", "OK", A_READS " G=word"},
    {HASH, A_READS, "read/guard 3 G L E word B", "!NOTHELD", SAME},
    {HASH, A_READS, "write/guard 3 G L E word A", "!NOTHELD", SAME},
    {HASH, A_WRITES, "write/guard 3 G L E word A", "OK", A_WRITES " G=word"},
    {HASH, A_WRITES, "read/guard 3 G L E word A", "!NOTHELD", SAME},
    {HASH, BOTH, "write/guard 3 G L E word B", "OK", BOTH " G=word"},
    {HASH, "L=read,A:1@20000", "read/guard 3 G L E word A", "OK",
     "L=read,A:1@20000 G=word"},
    {HASH, "L=read,A:1@20000 E=A:0@9000", "read/guard 3 G L E word A", "OK",
     "L=read,A:1@20000 E=A:0@9000 G=word"},
    {HASH, "L=read,A:1@20000 E=A:-1@9000", "read/guard 3 G L E word A",
     "!NOTHELD", SAME},
    {HASH, "L=write,A:1,Bw:1@20000 E=Bw:-1,A:9000@9000",
     "write/guard 3 G L E word B", "!NOTHELD", SAME},
    {HASH, "", "read/guard 3 G L E word A", "!NOTHELD", SAME},
    {HASH, "L=?text", "read/guard 3 G L E word A", "!", SAME},
};
OF_HASH(guarding_by_a_side, guarding)
