/* The scripts of a latch. Its count is a string, in no layout. */
#include "table.h"

#define DOWN(n)    "latch/count_down 3 L Q U " n " 120000 R"
#define SET(count) "latch/set 2 L U " count " 0 120000 R"

static const row counting_down[] = {
    {STRING, "L=?3", DOWN("1"), "2", "L=?2 U=@120000"},
    {STRING, "L=?3@20000", DOWN("2"), "1", "L=?1@20000 U=@120000"},
    {STRING, "L=?3 Q=b1:100@3000", DOWN("1"), "2",
     "L=?2 Q=b1:100@3000 U=@120000"},
    {STRING, "L=?9999999999999999", DOWN("9999999999999998"), "1",
     "L=?1 U=@120000"},
    /* once for each mark */
    {STRING, "L=?2 U=@5000", DOWN("1"), "2", SAME},
    {STRING, "L=?1 U=@5000 Q=b1:100@3000", DOWN("1"), "1", SAME},
    {STRING, "U=@5000", DOWN("1"), "0", SAME},
    {STRING, "L=?1 V=@5000", DOWN("1"), "0", "U=@120000 V=@5000", "R<0"},
    /* at zero, and below */
    {STRING, "L=?1", DOWN("1"), "0", "U=@120000", "R<0"},
    {STRING, "L=?1@20000", DOWN("5"), "0", "U=@120000", "R<0"},
    {STRING, "L=?2 Q=b1:100,b2:200,d1:300,b3:400@3000", DOWN("2"), "0",
     "U=@120000", "b1<L b2<L b3<L R<0"},
    {STRING, "L=?2 Q=s1:100,b2:200@3000", DOWN("2") " SPUBLISH", "0",
     "U=@120000", "sharded s1<L b2<L sharded R<0"},
    {STRING, "", DOWN("1"), "0", "U=@120000"},
    {STRING, "L=?0 Q=b1:100@3000", DOWN("1"), "0",
     "L=?0 Q=b1:100@3000 U=@120000"},
    {STRING, "L=?-3", DOWN("1"), "0", "L=?-3 U=@120000"},
    /* what is refused on the way */
    {STRING, "L=?1 Q=!", DOWN("1"), "0", "Q=! U=@120000", "R<0"},
    {STRING, "L=?1 Q=b1:100,b2:200@3000", DOWN("1"), "0", "U=@120000", NULL,
     "-publish"},
    {STRING, "L=?2", DOWN("1"), "!OOM", SAME, NULL, OOM},
    {STRING, "L=?2", DOWN("1"), "!can't", SAME, NULL, "-decrby"},
    {STRING, "L=?2", DOWN("1"), "!READONLY", SAME, NULL, READONLY},
    /* what is no count, or no number */
    {STRING, "L=!", DOWN("1"), "!WRONGTYPE", SAME},
    {STRING, "L=?text", DOWN("1"), "!WRONGTYPE the string is no count", SAME},
    {STRING, "L=?07", DOWN("1"), "!WRONGTYPE", SAME},
    {STRING, "L=?1.5", DOWN("1"), "!WRONGTYPE", SAME},
    {STRING, "L=?-0", DOWN("1"), "!WRONGTYPE", SAME},
    {STRING, "L=?1234567890123456789", DOWN("1"), "!WRONGTYPE", SAME},
    {STRING, "L=?2", DOWN("0"), "!ERR rlock: bad number", SAME},
    {STRING, "L=?2", DOWN("-1"), "!ERR rlock: bad number", SAME},
    {STRING, "L=?2", DOWN("1x"), "!ERR rlock: bad number", SAME},
    {STRING, "L=?2", DOWN("12345678901234567"), "!ERR rlock: bad number", SAME},
    {STRING, "L=?2", "latch/count_down 3 L Q U 1 0 R", "!ERR rlock: bad number",
     SAME},
};
OF_LAYOUT(counting_down_a_latch, counting_down, STRING, string)

static const row looking[] = {
    {STRING, "L=?3", "latch/look 2 L Q b1", "{ 3 1 }", "L=?3 Q=b1:now@6000"},
    {STRING, "L=?3 Q=b1:100,b2:200@3000", "latch/look 2 L Q b1", "{ 3 1 }",
     "L=?3 Q=b2:200,b1:now@6000"},
    {STRING, "L=?3 Q=b1:100@3000", "latch/look 2 L Q ''", "{ 3 0 }", SAME},
    {STRING, "L=?999999999999999999", "latch/look 2 L Q ''",
     "{ 999999999999999999 0 }", SAME},
    {STRING, "", "latch/look 2 L Q ''", "{ 0 0 }", SAME},
    {STRING, "Q=b1:100,b2:200@3000", "latch/look 2 L Q b1", "{ 0 0 }",
     "Q=b2:200@3000"},
    {STRING, "L=?0", "latch/look 2 L Q b1", "{ 0 0 }", SAME},
    {STRING, "L=?-3", "latch/look 2 L Q b1", "{ 0 0 }", SAME},
    {STRING, "L=?3", "latch/look 2 L Q b1", "{ 3 0 }", SAME, NULL, OOM},
    {STRING, "L=?3", "latch/look 2 L Q b1", "{ 3 0 }", SAME, NULL, "-zadd"},
    {STRING, "L=?3 Q=!", "latch/look 2 L Q b1", "{ 3 0 }", SAME},
    {STRING, "L=?3", "latch/look 2 L Q b1", "!READONLY", SAME, NULL, READONLY},
    {STRING, "L=?3", "latch/look 2 L Q ''", "!READONLY", SAME, NULL, READONLY},
    {STRING, "", "latch/look 2 L Q b1", "!READONLY", SAME, NULL, READONLY},
    {STRING, "L=!", "latch/look 2 L Q b1", "!WRONGTYPE", SAME},
    {STRING, "L=?text", "latch/look 2 L Q b1", "!WRONGTYPE", SAME},
};
OF_LAYOUT(looking_at_a_latch, looking, STRING, string)

static const row setting[] = {
    {STRING, "", SET("3"), "1", "L=?3 U=@120000", "R<1"},
    {STRING, "", SET("3") " SPUBLISH", "1", "L=?3 U=@120000", "sharded R<1"},
    {STRING, "", "latch/set 2 L U 3 20000 120000 R", "1",
     "L=?3@20000 U=@120000", "R<1"},
    {STRING, "L=?0@3000", SET("3"), "1", "L=?3 U=@120000", "R<1"},
    {STRING, "L=?-2", SET("3"), "1", "L=?3 U=@120000", "R<1"},
    {STRING, "L=?1", SET("3"), "0", SAME},
    {STRING, "L=?1 V=@5000", SET("3"), "0", SAME},
    {STRING, "L=?1 U=@5000", SET("3"), "1", SAME},
    {STRING, "U=@5000", SET("3"), "1", SAME},
    {STRING, "", SET("3"), "1", "L=?3 U=@120000", NULL, "-publish"},
    {STRING, "", SET("3"), "!OOM", SAME, NULL, OOM},
    {STRING, "", SET("3"), "!READONLY", SAME, NULL, READONLY},
    {STRING, "L=!", SET("3"), "!WRONGTYPE", SAME},
    {STRING, "L=?text", SET("3"), "!WRONGTYPE", SAME},
    {STRING, "", SET("0"), "!ERR rlock: bad count", SAME},
    {STRING, "", SET("-3"), "!ERR rlock: bad count", SAME},
    {STRING, "", SET("03"), "!ERR rlock: bad count", SAME},
    {STRING, "", "latch/set 2 L U 3 -1 120000 R", "!ERR rlock: bad count",
     SAME},
    {STRING, "", "latch/set 2 L U 3 x 120000 R", "!ERR rlock: bad count", SAME},
    {STRING, "", "latch/set 2 L U 3 0 0 R", "!ERR rlock: bad count", SAME},
};
OF_LAYOUT(setting_a_latch, setting, STRING, string)

static const row deleting[] = {
    {STRING, "L=?3", "latch/delete 2 L Q R", "1", "", "R<0"},
    {STRING, "L=?3@20000 Q=b1:100,s1:150,b2:200@3000",
     "latch/delete 2 L Q R SPUBLISH", "1", "",
     "b1<L sharded s1<L b2<L sharded R<0"},
    {STRING, "L=?0", "latch/delete 2 L Q R", "1", "", "R<0"},
    {STRING, "Q=b1:100@3000", "latch/delete 2 L Q R", "0", SAME},
    {STRING, "L=?3", "latch/delete 2 L Q R", "1", "", NULL, "-publish"},
    {STRING, "L=?3", "latch/delete 2 L Q R", "1", "", "R<0", OOM},
    {STRING, "L=?3", "latch/delete 2 L Q R", "!READONLY", SAME, NULL, READONLY},
    {STRING, "L=!", "latch/delete 2 L Q R", "!WRONGTYPE", SAME},
    {STRING, "L=?text", "latch/delete 2 L Q R", "!WRONGTYPE", SAME},
};
OF_LAYOUT(deleting_a_latch, deleting, STRING, string)
