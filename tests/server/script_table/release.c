/* release, handover, drop and force_release: all that frees one lock. */
#include "table.h"

#define FREE               "release 2 L Q A R"
#define LEAVE(level, bury) "release 3 L Q U A R " level " " bury

static const row release_of_ones_own[] = {
    {HASH, "L=A*3@20000 T=5@200000", FREE, "1", "T=5@200000", "R<0"},
    {TEXT, "L=A@20000 T=5@200000", FREE, "1", "T=5@200000"},
    {ALL, "L=A@20000", "release 2 L Q A ''", "1", ""},
    {TIMESTAMP, "L=A@-5000", FREE, "1", ""},
    {HASH, "L=A@20000", LEAVE("0", "0"), "1", "", "R<0"},
    {TEXT, "L=A@20000", LEAVE("0", "0"), "1", ""},
    {HASH, "L=A@20000", LEAVE("0", "60000"), "1", "U=@60000", "R<0"},
    {TEXT, "L=A@20000", LEAVE("0", "60000"), "1", "U=@60000"},
    {HASH, "L=A@20000 U=@20000", LEAVE("0", "60000"), "1", "U=@60000", "R<0"},
    /* a level less */
    {ALL, "L=A*3@20000 Q=b1:100@3000", LEAVE("2", "0"), "1",
     "L=A*2@20000 Q=b1:100@3000"},
    {ALL, "L=A*2@20000", LEAVE("1", "60000"), "1", "L=A*1@20000 U=@60000"},
    {HASH, "L=A*2@20000", LEAVE("1", "0"), "1", SAME, NULL, OOM},
    /* somebody waits */
    {HASH, "L=A@20000 Q=b1:100,b2:200@3000", FREE, "2", "Q=b2:200@3000",
     "b1<L R<0"},
    {TEXT, "L=A@20000 Q=b1:100,b2:200@3000", FREE, "2", "Q=b2:200@3000",
     "b1<L"},
    {ALL, "L=A@20000 Q=b1:100@3000", "release 2 L Q A ''", "2", "", "b1<L"},
    {ALL, "L=A@20000 Q=d1:50,d2:60,b1:100@3000", "release 2 L Q A ''", "2", "",
     "b1<L"},
    {ALL, "L=A@20000 Q=d1:50,d2:60@3000", "release 2 L Q A ''", "1", ""},
    {ALL, "L=A@20000 Q=s1:50,b1:100@3000", "release 2 L Q A ''", "2",
     "Q=b1:100@3000", "sharded s1<L"},
    {HASH, "L=A@20000", LEAVE("0", "0") " SPUBLISH", "1", "", "sharded R<0"},
    {HASH, "L=A@20000 Q=b1:100@3000", LEAVE("0", "60000") " SPUBLISH", "2",
     "U=@60000", "b1<L sharded R<0"},
    {TEXT, "L=A@20000 Q=b1:100@3000", LEAVE("0", "60000"), "2", "U=@60000",
     "b1<L"},
    /* quietly: what was a vote */
    {ALL, "L=A@20000 Q=b1:100@3000", "release 3 L U U A '' 0 60000", "1",
     "U=@60000 Q=b1:100@3000"},
    /* what is refused on the way */
    {ALL, "L=A@20000 Q=!", "release 2 L Q A ''", "1", "Q=!"},
    {ALL, "L=A@20000 Q=b1:100,b2:200@3000", "release 2 L Q A ''", "1",
     "Q=b2:200@3000", NULL, "-publish"},
    {HASH, "L=A@20000", FREE, "1", "", NULL, "-publish"},
    {ALL, "L=A@20000 Q=b1:100@3000", "release 3 L Q U A '' 0 60000", "12", "",
     "b1<L", OOM},
    {ALL, "L=A@20000", "release 3 L Q U A '' 1 60000", "11", SAME, NULL, OOM},
};
OF_ALL(release_of_ones_own, release_of_ones_own)

static const row release_of_none[] = {
    {ALL, "", FREE, "0", SAME},
    {ALL, "Q=b1:100@3000 T=5@200000", FREE, "0", SAME},
    {ALL, "L=B@20000 Q=b1:100@3000", FREE, "0", SAME},
    {ALL, "L=F@20000", FREE, "0", SAME},
    {ALL, "L=B*2@20000", LEAVE("1", "0"), "0", SAME},
    {ALL, "", LEAVE("1", "0"), "0", SAME},
    {ALL, "", LEAVE("0", "60000"), "0", "U=@60000"},
    {ALL, "L=B@20000 Q=b1:100@3000", LEAVE("0", "60000"), "0",
     "L=B@20000 Q=b1:100@3000 U=@60000"},
    {ALL, "L=B@20000", LEAVE("1", "60000"), "0", "L=B@20000 U=@60000"},
    {ALL, "", LEAVE("0", "60000"), "10", "", NULL, OOM},
    {ALL, "L=B@20000", LEAVE("1", "60000"), "10", SAME, NULL, OOM},
    {ALL, "L=!", FREE, "!WRONGTYPE", SAME},
    {ALL, "L=!", LEAVE("1", "0"), "!WRONGTYPE", SAME},
    {ALL, "L=!", LEAVE("0", "60000"), "!WRONGTYPE", "L=! U=@60000"},
    {TIMESTAMP, "L=?@20000", FREE, "!WRONGTYPE", SAME},
    {HASH, "L=A@20000", LEAVE("0", "1000000000000000"), "1",
     "U=@1000000000000000", "R<0"},
    {TEXT, "L=A@20000", LEAVE("0", "1000000000000000"), "1",
     "U=@1000000000000000"},
    {TEXT, "L=A@20000", LEAVE("1000000000000000", "0"), "1", SAME},
    {ALL, "L=A@20000", LEAVE("12345678901234567", "0"), "!ERR rlock: bad level",
     SAME},
    {ALL, "L=A@20000", "release 3 L Q U A R x", "!ERR rlock: bad level", SAME},
    {ALL, "L=A@20000", FREE, "!READONLY", SAME, NULL, READONLY},
    {ALL, "L=A@20000", LEAVE("x", "0"), "!ERR rlock: bad level", SAME},
    {ALL, "L=A@20000", LEAVE("-1", "0"), "!ERR rlock: bad level", SAME},
    {ALL, "L=A@20000", LEAVE("01", "0"), "!ERR rlock: bad level", SAME},
    {ALL, "L=A@20000", LEAVE("0", "x"), "!ERR rlock: bad level", SAME},
    {ALL, "L=A@20000", LEAVE("0", "-1"), "!ERR rlock: bad level", SAME},
    {ALL, "L=A@20000", LEAVE("0", "12345678901234567"), "!ERR rlock: bad level",
     SAME},
};
OF_ALL(release_of_none, release_of_none)

/* --- handed over ---------------------------------------------------------- */

#define HAND(patience, bell) "handover 4 L T V Q A B 60000 " patience " R " bell
#define HAS                  "L=B@60000 T=now@300000"

static const row handover[] = {
    {HASH, "L=A@20000 T=5@200000", HAND("2000", "''"), "token", HAS},
    {HASH, "L=A*3@90000", HAND("2000", "''"), "token", HAS},
    {HASH, "L=A@20000 T=2900000000000000@9000", HAND("2000", "''"),
     "2900000000000001", "L=B@60000 T=2900000000000001@300000"},
    /* the own bell */
    {HASH, "L=A@20000 Q=b1:100@3000", HAND("2000", "b1"), "token", HAS},
    {HASH, "L=A@20000 Q=b1:100,b2:now@3000", HAND("60000000", "b1"), "token",
     HAS " Q=b2:now@3000"},
    {HASH, "L=A@20000 Q=b1:100@3000", HAND("2000", "b1"), "{ 2 }", "",
     "b1<L R<0", "-zrem"},
    /* with tokens to keep */
    {HASH, "L=A@20000", HAND("2000", "''") " 50", "{ 3 1800000000000345 }",
     "L=B@60000 T=1800000000000395@300000"},
    {HASH, "L=A@20000", HAND("2000", "''") " 0", "token", HAS},
    {HASH, "L=A@20000 T=2900000000000000@9000", HAND("2000", "''") " 50",
     "2900000000000001", "L=B@60000 T=2900000000000001@300000"},
    {HASH, "L=A@20000", HAND("2000", "''") " 50", "token", HAS, NULL,
     "-incrby"},
    /* to who wants no token */
    {HASH, "L=A@20000", HAND("2000", "''") " -", "1", "L=B@60000"},
    {HASH, "L=A@20000 T=5@200000", HAND("2000", "''") " -", "1",
     "L=B@60000 T=5@200000"},
    {HASH, "L=B@20000", HAND("2000", "''") " -", "{ 5 1 }", "L=B@60000"},
    {HASH, "L=A@20000 Q=b2:now-500@3000", HAND("2000", "''") " -", "{ 2 }", "",
     "b2<L R<0"},
    {HASH, "L=A@20000 V=@50000", HAND("2000", "''") " -", "{ 1 }", "V=@50000",
     "R<0"},
    {HASH, "L=A@20000", HAND("2000", "''") " --", "!ERR rlock: bad", SAME},
    /* somebody has waited as long as he may: it is .000345 */
    {HASH, "L=A@20000 Q=b2:1799999999998345@3000", HAND("2000", "''"), "token",
     HAS " Q=b2:1799999999998345@3000"},
    {HASH, "L=A@20000 Q=b2:1799999999998344@3000", HAND("2000", "''"), "{ 2 }",
     "", "b2<L R<0"},
    {HASH, "L=A@20000 Q=b2:1800000000000345@3000", HAND("0", "''"), "token",
     HAS " Q=b2:1800000000000345@3000"},
    {HASH, "L=A@20000 Q=b2:1800000000000346@3000", HAND("2000", "''"), "{ 2 }",
     "", "b2<L R<0"},
    /* somebody has waited for longer, or the clock has gone back */
    {HASH, "L=A@20000 Q=b2:now-30@3000", HAND("2000", "''"), "{ 2 }", "",
     "b2<L R<0"},
    {HASH, "L=A@20000 Q=b2:now-500@3000", HAND("2000", "''"), "{ 2 }", "",
     "b2<L R<0"},
    {HASH, "L=A@20000 Q=b1:50,b2:100,b3:200@3000", HAND("2000", "b1"), "{ 2 }",
     "Q=b3:200@3000", "b2<L R<0"},
    {HASH, "L=A@20000 Q=b2:now+60000@3000", HAND("60000000", "''"), "{ 2 }", "",
     "b2<L R<0"},
    {HASH, "L=A@20000 Q=d1:100@3000", HAND("2000", "''"), "{ 1 }", "", "R<0"},
    {HASH, "L=A@20000 Q=d1:100@3000", "handover 4 L T V Q A B 60000 2000 '' ''",
     "{ 1 }", ""},
    {HASH, "L=A@20000", HAND("2000", "''") " 0 SPUBLISH", "token", HAS},
    {HASH, "L=A@20000 Q=b2:100@3000", HAND("2000", "''") " 0 SPUBLISH", "{ 2 }",
     "", "b2<L sharded R<0"},
    /* the next one has given up */
    {HASH, "L=A@20000 V=@50000", HAND("2000", "''"), "{ 1 }", "V=@50000",
     "R<0"},
    {HASH, "L=A@20000 V=@50000 Q=b2:now@3000", HAND("60000000", "''"), "{ 2 }",
     "V=@50000", "b2<L R<0"},
    /* what is refused on the way ends in a free lock */
    {HASH, "L=A@20000 Q=!", HAND("2000", "''"), "{ 1 }", "Q=!", "R<0"},
    {HASH, "L=A@20000 T=!", HAND("2000", "''"), "{ 1 }", "T=!", "R<0"},
    {HASH, "L=A@20000", HAND("2000", "''"), "token", HAS, NULL, OOM},
    {HASH, "L=A@20000", HAND("2000", "''"), "{ 1 }", "T=now@300000", "R<0",
     "-hset"},
    {HASH, "L=A@20000", HAND("2000", "''"), "{ 1 }", "T=now@300000", "R<0",
     "-pexpire"},
    /* asked again */
    {HASH, "L=B@20000 T=5@400000", HAND("2000", "''"), "{ 5 5 }",
     "L=B@60000 T=5@400000"},
    {HASH, "L=B@90000 T=5@400000 Q=b2:100@3000", HAND("2000", "''"), "{ 5 5 }",
     SAME},
    {HASH, "L=B@20000", HAND("2000", "''") " 50", "{ 5 1800000000000345 }",
     HAS},
    /* not held */
    {HASH, "", HAND("2000", "b1"), "{ 0 }", SAME},
    {HASH, "L=X@20000 Q=b1:100@3000", HAND("2000", "b1"), "{ 0 }", SAME},
    {HASH, "L=!", HAND("2000", "''"), "!WRONGTYPE", SAME},
    /* told badly */
    {HASH, "L=A@20000", "handover 4 L T V Q A B 0 2000 R ''", "!ERR rlock: bad",
     SAME},
    {HASH, "L=A@20000", "handover 4 L T V Q A B x 2000 R ''", "!ERR rlock: bad",
     SAME},
    {HASH, "L=A@20000", "handover 4 L T V Q A B 12345678901234567 2000 R ''",
     "!ERR rlock: bad", SAME},
    {HASH, "L=A@20000", "handover 4 L T V Q A B 1000000000000000 2000 R ''",
     "token", "L=B@1000000000000000 T=now@3600000"},
    {HASH, "L=A@20000", HAND("2000", "''"), "!READONLY", SAME, NULL, READONLY},
    {HASH, "L=A@20000", HAND("x", "''"), "!ERR rlock: bad", SAME},
    {HASH, "L=A@20000", "handover 4 L T V Q A B 60000 2000 R",
     "!ERR rlock: bad", SAME},
    {HASH, "L=A@20000", HAND("2000", "''") " x", "!ERR rlock: bad", SAME},
    {HASH, "L=A@20000", HAND("2000", "''") " -1", "!ERR rlock: bad", SAME},
};
OF_HASH(handover, handover)

/* --- by one key, or by force ---------------------------------------------- */

static const row drop[] = {
    {ALL, "L=A*2@20000 T=5@200000 Q=b1:100@3000", "drop 1 L A", "1",
     "T=5@200000 Q=b1:100@3000"},
    {ALL, "L=B@20000", "drop 1 L A", "0", SAME},
    {ALL, "", "drop 1 L A", "0", SAME},
    {ALL, "L=!", "drop 1 L A", "!WRONGTYPE", SAME},
    {TIMESTAMP, "L=A@-5000", "drop 1 L A", "1", ""},
    {TIMESTAMP, "L=?@20000", "drop 1 L A", "!WRONGTYPE", SAME},
};
OF_ALL(drop, drop)

#define FORCE "force_release 2 L Q R"

static const row by_force[] = {
    {HASH, "L=B*2@20000 T=5@200000", FORCE, "1", "T=5@200000", "R<0"},
    {TEXT, "L=B@20000 T=5@200000", FORCE, "1", "T=5@200000"},
    {TEXT, "L=F@20000", FORCE, "1", ""},
    {HASH, "L=J@20000", FORCE, "1", "", "R<0"},
    {HASH, "L=F@20000", FORCE, "!WRONGTYPE", SAME},
    {HASH, "L=A*0@20000", FORCE, "!WRONGTYPE", SAME},
    {HASH, "L=A*x@20000", FORCE, "!WRONGTYPE", SAME},
    {ALL, "L=A@20000", FORCE, "!READONLY", SAME, NULL, READONLY},
    {HASH, "L=B@20000 Q=d1:50,b1:100,b2:200@3000", FORCE, "1", "Q=b2:200@3000",
     "b1<L R<0"},
    {TEXT, "L=B@20000 Q=d1:50,b1:100,b2:200@3000", FORCE, "1", "Q=b2:200@3000",
     "b1<L"},
    {HASH, "L=B@20000", FORCE " SPUBLISH", "1", "", "sharded R<0"},
    {ALL, "Q=b1:100@3000", FORCE, "0", SAME},
    {TIMESTAMP, "L=B@-5000 Q=b1:100@3000", FORCE, "0", SAME},
    {TIMESTAMP, "L=?1800000000.911@9000", FORCE, "0", SAME},
    {TIMESTAMP, "L=?1800000000.912@9000", FORCE, "1", ""},
    {HASH, "L=B@20000", FORCE, "1", "", NULL, "-publish"},
    {ALL, "L=!", FORCE, "!WRONGTYPE", SAME},
    {TIMESTAMP, "L=?@20000", FORCE, "!WRONGTYPE", SAME},
};
OF_ALL(force_release, by_force)
