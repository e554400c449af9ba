/* The scripts of a semaphore. */
#include "table.h"

/* n of 5, for a minute. */
#define TAKE(n)     "permit/acquire 5 L P U S I A 60000 " n " 5 0"
#define BY          " b1 0 7"
#define B_STANDS(n) " S=B:100@3000 I=B:60000:" n ":b1,b1:2000:7@3000"
#define GRANT       "b1<grant:B:7:1:3000:L"
#define A_HAS       "L=?4 P=A1:20000"

static const row taking[] = {
    {HASH, "", TAKE("1"), "1", "L=?4 P=A1:60000"},
    {HASH, "L=?5", TAKE("1"), "1", "L=?4 P=A1:60000"},
    {HASH, "L=?9", TAKE("2"), "1", "L=?7 P=A1:60000,A2:60000"},
    {HASH, "L=?1", TAKE("1"), "1", "L=?0 P=A1:60000"},
    {HASH, "P=B1:20000", TAKE("1"), "1", "L=?3 P=B1:20000,A1:60000"},
    {HASH, "L=?5@9000", TAKE("1"), "1", "L=?4@60000 P=A1:60000@60000"},
    {HASH, "L=?5", "permit/acquire 5 L P U S I A 60000 1 5 100", "1",
     "L=?4@100000 P=A1:60000@100000"},
    {HASH, "L=?5", "permit/acquire 5 L P U S I A 60000 1 5 30", "1",
     "L=?4@60000 P=A1:60000@60000"},
    /* once more */
    {HASH, A_HAS, TAKE("1"), "1", "L=?4 P=A1:60000"},
    {HASH, "L=?4 P=A1:90000", TAKE("1"), "1", SAME},
    {HASH, A_HAS, TAKE("2"), "1", "L=?3 P=A1:60000,A2:60000"},
    {HASH, "L=?0 P=A1:20000,B1:30000", TAKE("2"), "{ 0 30000 0 1 -1 1 0 }",
     "L=?1 P=B1:30000"},
    /* busy */
    {HASH, "L=?0 P=B1:20000", TAKE("1"), "{ 0 20000 0 1 -1 0 0 }", SAME},
    {HASH, "L=?1 P=B1:20000", TAKE("2"), "{ 0 20000 0 1 -1 1 0 }", SAME},
    {HASH, "", "permit/acquire 5 L P U S I A 60000 1 0 0",
     "{ 0 -1 0 1 -1 0 0 }", SAME},
    {HASH, "L=?-2 P=B1:20000", TAKE("1"), "{ 0 20000 0 1 -1 -2 0 }", SAME},
    {HASH, "L=?0 P=B1:20000", TAKE("1") BY, "{ 0 20000 now 1 0 1 }",
     "L=?0 P=B1:20000 S=A:now@6000 I=A:60000:1:b1,b1:6000:7@6000"},
    {HASH, "L=?1 P=X1:20000" B_STANDS("2"), TAKE("1"), "{ 0 20000 0 1 -1 1 1 }",
     SAME},
    {HASH, "L=?1 P=X1:20000" B_STANDS("2"), TAKE("1") BY,
     "{ 0 20000 now 1 1 0 }",
     "L=?1 P=X1:20000 S=B:100,A:now@6000 I=B:60000:2:b1,b1:6000:7,"
     "A:60000:1:b1@6000"},
    /* of whom the lease is over */
    {HASH, "L=?0 P=B1:0", TAKE("1"), "1", "L=?0 P=A1:60000"},
    {HASH, "L=?0 P=B1:-1,X1:1", TAKE("1"), "1", "L=?0 P=X1:1,A1:60000"},
    {HASH, "L=?0 P=B1:1", TAKE("1"), "{ 0 1 0 1 -1 0 0 }", SAME},
    /* who stands comes first */
    {HASH, "L=?2" B_STANDS("1"), TAKE("1"), "1",
     "L=?0 P=B1:3000,A1:60000 I=b1:2000:7@3000", GRANT},
    {HASH, "L=?1" B_STANDS("1"), TAKE("1"), "{ 0 3000 0 1 -1 0 0 }",
     "L=?0 P=B1:3000 I=b1:2000:7@3000", GRANT},
    {HASH, "L=?2 S=A:50,B:100@3000 I=A:60000:1:b1,B:60000:1:b1,b1:2000:7@3000",
     TAKE("1") BY, "1", "L=?0 P=B1:3000,A1:60000 I=b1:6000:7@6000", GRANT},
    {HASH, "L=?1 S=B:100@3000", TAKE("1"), "1", "L=?0 P=A1:60000"},
    {HASH, "L=?1 S=B:100@3000 I=B:60000:1:d1,d1:2000:7@3000", TAKE("1"), "1",
     "L=?0 P=A1:60000"},
    {HASH, "L=?5 U=@50000", TAKE("1"), "{ -2 }", SAME},
    {HASH, "L=?x", TAKE("1"), "!WRONGTYPE the string is no", SAME},
    {HASH, "L=!", TAKE("1"), "!WRONGTYPE", SAME},
    {HASH, "L=?5 P=!", TAKE("1"), "!WRONGTYPE", SAME},
    {HASH, "L=?5", TAKE("1"), "!OOM", SAME, NULL, OOM},
    {HASH, "L=?5", TAKE("1"), "!", SAME, NULL, "-decrby"},
    {HASH, "L=?5", TAKE("0"), "!ERR rlock: bad", SAME},
    {HASH, "L=?5", TAKE("1001"), "!ERR rlock: bad", SAME},
    {HASH, "L=?5", TAKE("10000"), "!ERR rlock: bad", SAME},
};
OF_HASH(taking_permits, taking)

#define END(n) "permit/release 5 L P U S I A K " n " 0 0"

static const row giving_back[] = {
    {HASH, A_HAS, END("1"), "1", "L=?5", "K<5"},
    {HASH, A_HAS, END("1") " SPUBLISH", "1", "L=?5", "sharded K<5"},
    {HASH, "L=?3 P=A1:20000,A2:20000", END("2"), "1", "L=?5", "K<5"},
    {HASH, "L=?3 P=A1:20000,A2:20000", END("1"), "1", "L=?4 P=A2:20000", "K<4"},
    {HASH, "L=?-2 P=A1:20000", END("1"), "1", "L=?-1"},
    {HASH, A_HAS, "permit/release 5 L P U S I A K 1 60000 0", "1",
     "L=?5 U=@60000", "K<5"},
    {HASH, A_HAS, "permit/release 5 L P U S I A K 1 60000 0", "11", "L=?5",
     "K<5", OOM},
    {HASH, A_HAS, "permit/release 5 L P U S I A K 1 0 100", "1", "L=?5@100000",
     "K<5"},
    /* not all were held */
    {HASH, A_HAS, END("2"), "0", "L=?5", "K<5"},
    {HASH, "L=?4 P=B1:20000", END("1"), "0", SAME},
    {HASH, "L=?4 P=B1:20000", "permit/release 5 L P U S I A K 1 60000 0", "10",
     SAME, NULL, OOM},
    {HASH, "L=?4 P=B1:20000", END("1"), "0", SAME, NULL, "-incrby"},
    {HASH, "", END("1"), "0", SAME},
    {HASH, "P=A1:20000", END("1"), "1", ""},
    /* who stands is let in, or has gone, or gives up */
    {HASH, "L=?0 P=A1:20000" B_STANDS("1"), END("1"), "2",
     "L=?0 P=B1:3000 I=b1:2000:7@3000", GRANT},
    {HASH, "L=?1 P=A1:20000" B_STANDS("1"), END("1"), "2",
     "L=?1 P=B1:3000 I=b1:2000:7@3000", GRANT " K<1"},
    {HASH, "L=?0 P=A1:20000" B_STANDS("2"), END("1"), "2", "L=?1" B_STANDS("2"),
     "K<1"},
    {HASH, "L=?0 P=A1:20000 S=B:100@3000", END("1"), "1", "L=?1", "K<1"},
    {HASH, "L=?0 P=A1:20000 S=B:100@3000 I=B:60000:1:d1,d1:2000:7@3000",
     END("1"), "1", "L=?1", "K<1"},
    {HASH, "L=?0 P=A1:20000 S=A:100@3000 I=A:60000:1:b1,b1:2000:7@3000",
     END("1"), "1", "L=?1 I=b1:2000:7@3000", "K<1"},
    {HASH, "L=?1 S=A:50,B:100@3000 I=A:60000:2:b1,B:60000:1:b1,b1:2000:7@3000",
     END("2"), "0", "L=?0 P=B1:3000 I=b1:2000:7@3000", GRANT},
    {HASH, "L=?0 P=X1:-1,A1:20000" B_STANDS("2"), END("1"), "2",
     "L=?0 P=B1:3000,B2:3000 I=b1:2000:7@3000", GRANT},
    {HASH, "L=?x P=A1:20000", END("1"), "!WRONGTYPE", "L=?x"},
    {HASH, A_HAS, END("0"), "!ERR rlock: bad", SAME},
};
OF_HASH(giving_permits_back, giving_back)

static const row prolonging[] = {
    {HASH, A_HAS, "permit/renew 2 L P A 60000 1 0", "1", "L=?4 P=A1:60000"},
    {HASH, A_HAS, "permit/renew 2 L P A 1000 1 0", "1", SAME},
    {HASH, A_HAS, "permit/renew 2 L P A 0 1 0", "1", SAME},
    {HASH, A_HAS, "permit/renew 2 L P A 0 2 0", "0", SAME},
    {HASH, A_HAS, "permit/renew 2 L P A 60000 2 0", "0", SAME},
    {HASH, A_HAS, "permit/renew 2 L P B 60000 1 0", "0", SAME},
    {HASH, A_HAS, "permit/renew 2 L P A 60000 1 100", "1",
     "L=?4@100000 P=A1:60000@100000"},
    {HASH, "L=?4@9000 P=A1:20000@9000", "permit/renew 2 L P A 60000 1 0", "1",
     "L=?4@60000 P=A1:60000@60000"},
    {HASH, "L=?4@90000 P=A1:20000@9000", "permit/renew 2 L P A 60000 1 0", "1",
     "L=?4@90000 P=A1:60000@90000"},
    {HASH, A_HAS, "permit/renew 2 L P A x 1 0", "!ERR rlock: bad", SAME},
    {HASH, A_HAS, "permit/extend 2 L P A 60000 1 0", "1", "L=?4 P=A1:60000"},
    {HASH, A_HAS, "permit/extend 2 L P A 1000 1 0", "1", "L=?4 P=A1:1000"},
    {HASH, A_HAS, "permit/extend 2 L P A 1000 2 0", "0", SAME},
    {HASH, A_HAS, "permit/extend 2 L P A 0 1 0", "!ERR rlock: bad", SAME},
    {HASH, A_HAS, "permit/renew_many 2 L P 60000 A 1 0", "1",
     "L=?4 P=A1:60000"},
    {HASH, A_HAS, "permit/renew_many 2 L P 1000 A 1 0", "1", SAME},
    {HASH, A_HAS, "permit/renew_many 4 L P L2 P2 60000 A 2 0 B 1 0", "00",
     SAME},
    {HASH, A_HAS " P2=!", "permit/renew_many 4 L2 P2 L P 60000 B 1 0 A 1 0",
     "e1", "L=?4 P=A1:60000 P2=!"},
    {HASH, A_HAS, "permit/renew_many 2 L P 60000 A 0 0", "e", SAME},
    {HASH, A_HAS, "permit/renew_many 2 L P 60000 A 1 x", "e", SAME},
    {HASH, A_HAS, "permit/renew_many 2 L P 0 A 1 0", "!ERR rlock: bad", SAME},
    {HASH, A_HAS, "permit/renew_many 2 L P 60000 A 1", "!ERR rlock: bad", SAME},
};
OF_HASH(prolonging_permits, prolonging)

#define ADD(n) "permit/add 5 L P U S I " n " 5 0 120000 K"

static const row counting[] = {
    {HASH, "L=?2", ADD("3"), "1", "L=?5 U=@120000", "K<5"},
    {HASH, "L=?2", ADD("3") " SPUBLISH", "1", "L=?5 U=@120000", "sharded K<5"},
    {HASH, "L=?2", ADD("-3"), "1", "L=?-1 U=@120000"},
    {HASH, "L=?2", ADD("0"), "1", "L=?2 U=@120000"},
    {HASH, "P=B1:20000", ADD("3"), "1", "L=?7 P=B1:20000 U=@120000", "K<7"},
    {HASH, "L=?-4", ADD("3"), "1", "L=?-1 U=@120000"},
    {HASH, "L=?2 U=@9000", ADD("3"), "1", SAME},
    {HASH, "L=?0 P=X1:20000" B_STANDS("1"), ADD("2"), "1",
     "L=?1 P=B1:3000,X1:20000 I=b1:2000:7@3000 U=@120000", GRANT " K<1"},
    {HASH, "L=?0 P=X1:-1", ADD("1"), "1", "L=?2 U=@120000", "K<2"},
    {HASH, "L=?2", "permit/add 5 L P U S I 1 5 100 120000 K", "1",
     "L=?3@100000 U=@120000", "K<3"},
    {HASH, "L=?1", ADD("4503599627370496"), "0", SAME},
    {HASH, "L=?0", ADD("4503599627370496"), "1",
     "L=?4503599627370496 U=@120000", "K<4503599627370496"},
    {HASH, "L=?-1", ADD("-4503599627370496"), "0", SAME},
    {HASH, "L=?2", ADD("3"), "!OOM", SAME, NULL, OOM},
    {HASH, "L=?2", ADD("3"), "!", SAME, NULL, "-incrby"},
    {HASH, "L=?x", ADD("3"), "!WRONGTYPE", SAME},
    {HASH, "L=?2", ADD("-0"), "!ERR rlock: bad", SAME},
    {HASH, "L=?2", ADD("x"), "!ERR rlock: bad", SAME},
    {HASH, "L=?2 P=X1:0,B1:20000", "permit/available 2 L P 5", "3", SAME},
    {HASH, "P=X1:0,B1:20000", "permit/available 2 L P 5", "4", SAME},
    {HASH, "", "permit/available 2 L P 0", "0", SAME},
    {HASH, "L=?2", "permit/available 2 L P x", "!ERR rlock: bad", SAME},
    {HASH, "L=?2@9000", "permit/touch 1 L", "1", SAME},
    {HASH, "", "permit/touch 1 L", "0", SAME},
};
OF_HASH(counting_permits, counting)
