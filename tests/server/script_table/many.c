/* The scripts about many locks, and those that know no layout. */
#include "table.h"

#define RENEW "renew_many 3 L L2 L3 60000 A A A"

static const row renew_many[] = {
    {ALL, "L=A@20000 L2=A@30000 L3=A*2@9000", RENEW, "111",
     "L=A@60000 L2=A@60000 L3=A*2@60000"},
    {ALL, "L=A@90000 L2=B@20000", RENEW, "100", SAME},
    {ALL, "L=F@20000 L3=A@20000", RENEW, "001", "L=F@20000 L3=A@60000"},
    {ALL, "L=! L2=A@20000 L3=!", RENEW, "e1e", "L=! L2=A@60000 L3=!"},
    {TIMESTAMP, "L=?@20000 L2=A@20000 L3=A@-5000", RENEW, "e11",
     "L=?@20000 L2=A@60000 L3=A@60000"},
    {KEPT, "L2=A", RENEW, "010", "L2=A@60000"},
    {ALL, "L=A@20000 L2=A@20000 L3=A@20000", RENEW, "111",
     "L=A@60000 L2=A@60000 L3=A@60000", NULL, OOM},
    {KEPT, "L=A@90000 L2=A@20000 L3=A", RENEW, "111",
     "L=A@90000 L2=A@60000 L3=A@60000"},
    {KEPT, "L=A@90000 L2=A@20000 L3=A", RENEW, "111",
     "L=A@90000 L2=A@60000 L3=A@60000", NULL, BEFORE_7},
    /* keeps tokens' keys */
    {ALL, "L=A@20000 T=6@9000 L2=A@20000 T2=7@9000",
     "renew_many 3 L L2 T2 60000 A A", "11",
     "L=A@60000 T=6@9000 L2=A@60000 T2=7@300000"},
    {ALL, "L=A@20000 T=6@9000 L2=B@20000 T2=7@9000",
     "renew_many 4 L L2 T T2 200000 A A", "10",
     "L=A@200000 T=6@400000 L2=B@20000 T2=7@400000"},
    {ALL, "L=A@20000", "renew_many 2 L T 60000 A", "1", "L=A@60000"},
    {ALL, "L=A@20000 T=6@9000", "renew_many 3 L T T2 60000 A",
     "!ERR rlock: bad", SAME},
    {ALL, "L=A@20000", "renew_many 1 L 1000000000000000 A", "1",
     "L=A@1000000000000000"},
    {ALL, "L=A@20000", "renew_many 1 L 12345678901234567 A", "!ERR rlock: bad",
     SAME},
    {ALL, "L=A@20000", "renew_many 1 L 0 A", "!ERR rlock: bad", SAME},
    {ALL, "L=A@20000", "renew_many 1 L x A", "!ERR rlock: bad", SAME},
    {ALL, "L=A@20000", "renew_many 1 L 60000", "!ERR rlock: bad", SAME},
    {ALL, "L=A@20000", "renew_many 1 L 60000 A A", "!ERR rlock: bad", SAME},
};
OF_ALL(renew_many, renew_many)

#define TAKE "take_many 6 L L2 U U2 T T2 60000 A A"
#define HAVE "L=A@60000 L2=A@60000"

static const row take_many[] = {
    {KEPT, "", TAKE, "token token2", HAVE " T=now@300000 T2=now@300000"},
    {KEPT, "T=2900000000000000@9000 T2=x@9000", TAKE, "2900000000000001 token2",
     HAVE " T=2900000000000001@300000 T2=now@300000"},
    {KEPT, "", "take_many 3 L U T 200000 A", "token",
     "L=A@200000 T=now@400000"},
    {KEPT, "", "take_many 3 L U T 1000000000000000 A", "token",
     "L=A@1000000000000000 T=now@3600000"},
    {KEPT, "", "take_many 3 L U T 12345678901234567 A", "!ERR rlock: bad",
     SAME},
    {KEPT, "", "take_many 0 60000", "!ERR rlock: bad", SAME},
    {KEPT, "", TAKE, "!READONLY", SAME, NULL, READONLY},
    /* some are busy */
    {KEPT, "L=B@20000 L2=B@20000", TAKE, "1", SAME},
    {KEPT, "L2=B@20000 T=5@9000", TAKE, "2", SAME},
    {KEPT, "L=A@20000 L2=F@20000", TAKE, "2", SAME},
    /* given up */
    {KEPT, "U=@50000", TAKE, "-1", SAME},
    {KEPT, "U2=@50000", TAKE, "-2", SAME},
    {KEPT, "L=A@20000 T=5@9000 U=@50000", TAKE, "-1", SAME},
    {KEPT, "L=B@20000 U2=@50000", TAKE, "1", SAME},
    /* asked again, also where only some were got */
    {KEPT, "L=A@20000 T=5@9000 L2=A@90000 T2=6@9000", TAKE, "5 6",
     "L=A@60000 T=5@9000 L2=A@90000 T2=6@9000"},
    {KEPT, "L=A@20000 T=5@9000", TAKE, "5 token2",
     HAVE " T=5@9000 T2=now@300000"},
    {KEPT, "L=A@20000 L2=A@20000 T2=x@9000", TAKE, "token token2",
     HAVE " T=now@300000 T2=now@300000"},
    {HASH, "L=A*2@20000 T=5@9000 L2=A@20000 T2=6@9000", TAKE, "5 6",
     "L=A*2@60000 T=5@9000 L2=A@60000 T2=6@9000"},
    /* what is refused on the way undoes those before it */
    {KEPT, "T2=!", TAKE, "!WRONGTYPE", "T=now@300000 T2=!"},
    {KEPT, "L=A@20000 T=5@9000 T2=!", TAKE, "!WRONGTYPE",
     "L=A@60000 T=5@9000 T2=!"},
    {KEPT, "L2=!", TAKE, "!WRONGTYPE", SAME},
    {KEPT, "", TAKE, "!OOM", SAME, NULL, OOM},
    {HASH, "", TAKE, "!", "T=now@300000", NULL, "-pexpire"},
    /* told badly */
    {KEPT, "", "take_many 3 L U T 0 A", "!ERR rlock: bad", SAME},
    {KEPT, "", "take_many 3 L U T x A", "!ERR rlock: bad", SAME},
    {KEPT, "", "take_many 3 L U T 60000", "!ERR rlock: bad", SAME},
    {KEPT, "", "take_many 3 L U T 60000 A A", "!ERR rlock: bad", SAME},
    {KEPT, "", "take_many 4 L U T T2 60000 A", "!ERR rlock: bad", SAME},
};
OF_KEPT(take_many, take_many)

#define FREE "free_many 4 L L2 Q Q2 A A R R2"

static const row free_many[] = {
    {HASH, "L=A*2@20000 L2=A@20000 T=5@9000", FREE, "11", "T=5@9000",
     "R<0 R2<0"},
    {STRING, "L=A@20000 L2=A@20000 T=5@9000", FREE, "11", "T=5@9000"},
    {HASH, "L=A@20000 L2=A@20000 Q2=b1:100,b2:200@3000", FREE, "12",
     "Q2=b2:200@3000", "R<0 R2<0 b1<L2"},
    {STRING, "L=A@20000 L2=A@20000 Q2=b1:100,b2:200@3000", FREE, "12",
     "Q2=b2:200@3000", "b1<L2"},
    {STRING, "L=A@20000 L2=A@20000 Q=d1:50,b1:100@3000", FREE, "21", "",
     "b1<L"},
    {HASH, "L=B@20000 L2=A@20000 Q=b1:100@3000", FREE, "01",
     "L=B@20000 Q=b1:100@3000", "R2<0"},
    {STRING, "L=B@20000 L2=A@20000 Q=b1:100@3000", FREE, "01",
     "L=B@20000 Q=b1:100@3000"},
    {KEPT, "Q=b1:100@3000", FREE, "00", SAME},
    {HASH, "L=! L2=A@20000", FREE, "e1", "L=!", "R2<0"},
    {STRING, "L=! L2=A@20000", FREE, "e1", "L=!"},
    {HASH, "L=A@20000 L2=A@20000", FREE " SPUBLISH", "11", "",
     "sharded R<0 sharded R2<0"},
    {STRING, "L=A@20000 L2=A@20000", FREE " SPUBLISH", "11", ""},
    {KEPT, "L=A@20000", "free_many 2 L Q A", "!ERR rlock: bad", SAME},
    {KEPT, "L=A@20000", "free_many 2 L Q A R PUBLISH", "!ERR rlock: bad", SAME},
    {KEPT, "L=A@20000", "free_many 2 L Q A R SPUBLISH x", "!ERR rlock: bad",
     SAME},
};
OF_KEPT(free_many, free_many)

/* --- without a layout ----------------------------------------------------- */

#define PROBE "probe 3 T Q U b1"
/* {missing, warnings, run_id, uptime, version, mode} */
#define LACKS(right) "{ " right " '' run some '' standalone }"
#define WARNS(text)  "{ '' " text " run some '' standalone }"
#define TRIED        "b1<''"
#define LEAVE        "leave 3 L Q T b1"

static const row others[] = {
    {HASH, "L=A@20000 Q=b1:50,b2:100@3000", LEAVE, "{ 1 A -1 }",
     "L=A@20000 Q=b2:100@3000"},
    {HASH, "L=A@20000 Q=b1:50@3000 T=now-7000@200000", LEAVE, "{ 1 A ~7000 }",
     "L=A@20000 T=now-7000@200000"},
    {HASH, "L=F@20000 Q=b1:50@3000 T=now-7000@200000", LEAVE, "{ 1 F -1 }",
     "L=F@20000 T=now-7000@200000"},
    {HASH, "Q=b1:50,b2:100@3000", LEAVE, "{ 1 '' -1 }", "Q=b2:100@3000"},
    {HASH, "L=A@20000 Q=b2:100@3000", LEAVE, "{ 0 A -1 }", SAME},
    {HASH, "L=A@20000 T=!", LEAVE, "{ 0 A -1 }", SAME},
    {HASH, "Q=b2:100,b3:200@3000", LEAVE, "{ 0 '' -1 }", "Q=b3:200@3000",
     "b2<L"},
    {HASH, "", LEAVE, "{ 0 '' -1 }", SAME},
    {HASH, "L=! Q=b2:100@3000", LEAVE, "{ 0 '' -1 }", SAME},

    {HASH, "", "raise 1 T 500", "1", "T=500@300000"},
    {HASH, "T=9@9000", "raise 1 T 500", "1", "T=500@300000"},
    {HASH, "T=9@900000", "raise 1 T 500", "1", "T=500@900000"},
    {HASH, "T=x@9000", "raise 1 T 500", "1", "T=500@300000"},
    {HASH, "T=500@9000", "raise 1 T 500", "1", SAME},
    {HASH, "T=1000@9000", "raise 1 T 500", "1", SAME},
    {HASH, "T=9@300001", "raise 1 T 500", "1", "T=500@300001"},
    {HASH, "T=9", "raise 1 T 500", "1", "T=500@300000"},
    {HASH, "T=9@9000", "raise 1 T 999999999999999999", "1",
     "T=999999999999999999@300000"},
    {HASH, "T=1000000000000000000@9000", "raise 1 T 500", "1", "T=500@300000"},
    {HASH, "T=9@9000", "raise 1 T 1000000000000000000", "!ERR rlock: bad token",
     SAME},
    {HASH, "", "raise 1 T 500", "!READONLY", SAME, NULL, READONLY},
    {HASH, "T=9@9000", "raise 1 T x", "!ERR rlock: bad token", SAME},
    {HASH, "T=9@9000", "raise 1 T 0500", "!ERR rlock: bad token", SAME},
    {HASH, "T=!", "raise 1 T 500", "!WRONGTYPE", SAME},

    {HASH, "L=A@20000", "touch 1 L", "1", SAME},
    {HASH, "L=A", "touch 1 L", "0", SAME},
    {HASH, "L=A@1", "touch 1 L", "1", SAME},
    {HASH, "", "touch 1 L", "0", SAME},

    {HASH, "L=A@20000", "identify 0", "{ run some }", SAME},

    {HASH, "", PROBE, LACKS("''"), SAME, TRIED},
    {HASH, "", "probe 3 T Q U s1", LACKS("''"), SAME, "sharded s1<''"},
    {HASH, "", PROBE, "!READONLY", SAME, NULL, READONLY},
    {HASH, "", PROBE, LACKS("HSET"), SAME, TRIED, "-hset"},
    {HASH, "", PROBE, LACKS("HEXISTS"), SAME, TRIED, "-hexists"},
    {HASH, "", PROBE, LACKS("HLEN"), SAME, TRIED, "-hlen"},
    {HASH, "", PROBE, LACKS("HSCAN"), SAME, TRIED, "-hscan"},
    {HASH, "", PROBE, LACKS("PTTL"), SAME, TRIED, "-pttl"},
    {HASH, "", PROBE, LACKS("HDEL"), SAME, TRIED, "-hdel"},
    {HASH, "", PROBE, LACKS("DEL"), SAME, TRIED, "-del"},
    {HASH, "", PROBE, LACKS("GET"), SAME, TRIED, "-get"},
    {HASH, "", PROBE, LACKS("ZADD"), SAME, TRIED, "-zadd"},
    {HASH, "", PROBE, LACKS("ZREM"), SAME, TRIED, "-zrem"},
    {HASH, "", PROBE, LACKS("ZPOPMIN"), SAME, TRIED, "-zpopmin"},
    {HASH, "", PROBE, LACKS("EXISTS"), SAME, TRIED, "-exists"},
    {HASH, "", PROBE, LACKS("TIME"), SAME, TRIED, "-time"},
    {HASH, "", PROBE, LACKS("PEXPIRE,_PEXPIRE"), SAME, TRIED, "-pexpire"},
    {HASH, "", PROBE, LACKS("SET,_SET"), SAME, TRIED, "-set"},

    {HASH, "", PROBE,
     WARNS("PUBLISH_to_rlock_bell:*_is_not_allowed,_so_a_release_wakes_nobody_"
           "and_waiters_poll"),
     SAME, NULL, "-publish"},
    {HASH, "", "probe 3 T Q U s1",
     WARNS("SPUBLISH_to_rlock_sbell:*_is_not_allowed,_so_a_release_wakes_"
           "nobody_and_waiters_poll"),
     SAME, NULL, "-spublish"},
    {HASH, "", PROBE,
     WARNS("ZRANK_is_not_allowed,_so_when_a_lease_runs_out_all_who_wait_ask_"
           "at_once"),
     SAME, TRIED, "-zrank"},
    {HASH, "", PROBE,
     WARNS("ZRANGE_is_not_allowed,_so_threads_of_one_client_do_not_hand_locks_"
           "over_to_each_other"),
     SAME, TRIED, "-zrange"},
    {HASH, "", PROBE,
     WARNS("maxmemory-policy_is_allkeys-lru,_so_the_server_may_drop_locks_that_"
           "are_held"),
     SAME, TRIED, EVICTS},
    {HASH, "", PROBE, LACKS("''"), SAME, TRIED, ENDLESS},
    {HASH, "", PROBE, LACKS("''"), SAME, TRIED, ROOMY},

    /* What the user may not know is not told. */
    {HASH, "", PROBE, "{ '' '' '' 0 '' '' }", SAME, TRIED, "-info"},
    {HASH, "", "identify 0", "{ '' 0 }", SAME, NULL, "-info"},
};
OF_HASH(other_scripts, others)
