#include "route/slotmap_reply.h"

#include <stdlib.h>
#include <string.h>

#include "../support/test.h"
#include "wire/line.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccccccccccc"

/* Two masters, of which one is thought dead, and a replica. */
#define NODES                                                                  \
    A " 10.0.0.1:6379@16379 myself,master - 0 0 7 connected 0-8191\n" B        \
      " 10.0.0.2:6379@16379,two master,fail - 0 0 12 connected 8192-16383\n" C \
      " 10.0.0.3:6379@16379 slave " A " 0 0 7 connected\n"

#define RANGE(first, last, host, port, id)                                     \
    "*3\r\n:" first "\r\n:" last "\r\n*4\r\n" host ":" port "\r\n$40\r\n" id   \
    "\r\n*0\r\n"
#define HOST(len, text) "$" len "\r\n" text "\r\n"
#define NOBODY          "$-1\r\n"

typedef struct reading {
    rl_slotmap_reply *c;
    rl_line line;
    rl_slot slot;
    bool over;
} reading;

static void answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    (void)r, (void)now_us;
    RL_CONTAINER(s, reading, slot)->over = true;
}

static void failed(rl_slot *s, bool whole, const rl_fault *why, int64_t now_us)
{
    (void)s, (void)whole, (void)why, (void)now_us;
}

/* One answer, byte by byte. False: it was refused. */
static bool feed(reading *r, rl_sink *into, const char *bytes, size_t n)
{
    r->over = false;
    r->slot = (rl_slot){.answered = answered, .failed = failed};
    r->line.reply.sink = into;
    r->line.budget = RL_SLOTMAP_TEXT;
    rl_put_text(rl_line_begin(&r->line), "?");
    EXPECT(rl_line_push(&r->line, &r->slot));
    rl_line_sent(&r->line, (size_t)(r->line.written - r->line.sent));
    for (size_t i = 0; i < n; i++)
        if (!rl_line_feed(&r->line, bytes + i, 1, 0))
            return false;
    return r->over;
}

static bool feed_nodes(reading *r, const char *text)
{
    size_t size = strlen(text) + 32;
    char *bytes = malloc(size);
    EXPECT(bytes);
    snprintf(bytes, size, "$%zu\r\n%s\r\n", strlen(text), text);
    bool ok = feed(r, &r->c->nodes, bytes, strlen(bytes));
    free(bytes);
    return ok;
}

static void begin(reading *r)
{
    *r = (reading){.c = malloc(sizeof(rl_slotmap_reply))};
    EXPECT(r->c && rl_line_init(&r->line));
    rl_slotmap_reply_init(r->c);
}

static void end(reading *r)
{
    rl_line_fini(&r->line);
    free(r->c);
}

/* What a server says with these two answers; true: it makes sense. */
static bool says(reading *r, const char *nodes, const char *slots)
{
    begin(r);
    EXPECT(feed_nodes(r, nodes));
    EXPECT(feed(r, &r->c->slots, slots, strlen(slots)));
    return !r->c->absurd && r->c->claimed > 0;
}

TEST(slotmap_reply, masters_their_epochs_and_who_has_which_slot)
{
    reading r;
    EXPECT(says(&r, NODES,
                "*2\r\n" RANGE("0", "8191", HOST("8", "10.0.0.1"), "6379", A)
                    RANGE("8192", "16383", HOST("3", "two"), "6380", B)));
    EXPECT(r.c->count == 3 && r.c->node[0].master && r.c->node[1].master);
    EXPECT_INT(r.c->claimed, RL_HASH_SLOTS);
    EXPECT(r.c->owner[0] == 1 && r.c->owner[8191] == 1);
    EXPECT(r.c->owner[8192] == 2 && r.c->owner[16383] == 2);
    EXPECT_STR(r.c->node[1].host, "two");
    EXPECT(r.c->node[1].port == 6380 && r.c->node[1].epoch == 12);
    EXPECT(r.c->node[1].failed && !r.c->node[0].failed);
    end(&r);
}

TEST(slotmap_reply, a_server_without_a_name_is_where_the_one_is_that_was_asked)
{
    reading r;
    EXPECT(says(&r, NODES,
                "*2\r\n" RANGE("0", "1", NOBODY, "6379", A)
                    RANGE("2", "3", HOST("1", "?"), "6380", B)));
    EXPECT_STR(r.c->node[0].host, "");
    EXPECT_STR(r.c->node[1].host, "");
    EXPECT_INT(r.c->claimed, 4);
    end(&r);
}

TEST(slotmap_reply, replicas_have_no_slots_but_an_address)
{
    reading r;
    EXPECT(says(&r, NODES,
                "*1\r\n*4\r\n:0\r\n:9\r\n*3\r\n$1\r\na\r\n:1\r\n$40\r\n" A
                "\r\n*3\r\n$1\r\nb\r\n:2\r\n$40\r\n" C "\r\n"));
    EXPECT(r.c->owner[0] == 1 && r.c->owner[9] == 1 && r.c->owner[10] == 0);
    EXPECT_STR(r.c->node[0].host, "a");
    EXPECT(r.c->count == 3 && r.c->node[0].master && !r.c->node[2].master);
    EXPECT(strcmp(r.c->node[2].host, "b") == 0 && r.c->node[2].port == 2);
    end(&r);
}

/* It has heard nothing of them lately. */
TEST(slotmap_reply, a_replica_that_no_range_names_is_where_the_list_says)
{
    static const struct {
        const char *address, *host;
        int port;
    } forms[] = {{"10.0.0.3:6379@16379", "10.0.0.3", 6379},
                 {"10.0.0.3:6379@16379,c.example", "10.0.0.3", 6379},
                 {"::1:7@17", "::1", 7},
                 {":0@0", "", 0},
                 {":6379@16379", "", 0},
                 {"a:70000@1", "", 0},
                 {"a:x@1", "", 0},
                 {"a:1", "", 0},
                 {"@", "", 0}};
    reading r;
    char nodes[200];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(nodes, sizeof nodes,
                 A " x master - 0 0 7 c\n" C " %s slave " A " 0 0 7 c\n",
                 forms[i].address);
        EXPECT(
            says(&r, nodes, "*1\r\n" RANGE("0", "1", HOST("1", "a"), "1", A)));
        EXPECT_STR(r.c->node[1].host, forms[i].host);
        EXPECT_INT(r.c->node[1].port, forms[i].port);
        end(&r);
    }
}

TEST(slotmap_reply, who_says_so_is_told)
{
    reading r;
    EXPECT(says(&r, NODES, "*1\r\n" RANGE("0", "1", HOST("1", "a"), "1", A)));
    EXPECT_INT(r.c->self, 1);
    EXPECT(rl_slotmap_reply_find(r.c, C) == &r.c->node[2]);
    EXPECT(!rl_slotmap_reply_find(r.c, "dddd"));
    end(&r);
}

/* So a server speaks of one that it has lost sight of: "id :0@0 ... noaddr". */
TEST(slotmap_reply,
     nobody_is_known_for_the_slots_of_a_server_without_an_address)
{
    reading r;
    EXPECT(says(&r, NODES,
                "*2\r\n" RANGE("0", "1", HOST("1", "a"), "1", A)
                    RANGE("2", "3", HOST("0", ""), "0", B)));
    EXPECT(r.c->claimed == 2 && r.c->owner[1] == 1 && r.c->owner[2] == 0);
    EXPECT_INT(r.c->node[1].port, 0);
    end(&r);
}

TEST(slotmap_reply, a_map_that_names_one_server_at_two_addresses_is_none)
{
    static const char *const slots[] = {
        "*2\r\n" RANGE("0", "1", HOST("1", "a"), "1", A)
            RANGE("2", "3", HOST("1", "a"), "2", A),
        "*2\r\n" RANGE("0", "1", HOST("1", "a"), "1", A)
            RANGE("2", "3", HOST("1", "b"), "1", A),
        "*1\r\n*5\r\n:0\r\n:9\r\n*3\r\n$1\r\na\r\n:1\r\n$40\r\n" A
        "\r\n*3\r\n$1\r\nb\r\n:2\r\n$40\r\n" C
        "\r\n*3\r\n$1\r\nb\r\n:3\r\n$40\r\n" C "\r\n",
    };
    reading r;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        EXPECT(!says(&r, NODES, slots[i]));
        end(&r);
    }
    EXPECT(says(&r, NODES,
                "*2\r\n" RANGE("0", "1", HOST("1", "a"), "1", A)
                    RANGE("2", "3", HOST("1", "a"), "1", A)));
    end(&r);
}

/* It has become a master between the two answers. */
TEST(slotmap_reply, a_server_whose_epoch_is_not_known_waits_for_the_next_time)
{
    reading r;
    EXPECT(says(&r, NODES,
                "*2\r\n" RANGE("0", "1", HOST("1", "a"), "1", A)
                    RANGE("2", "3", HOST("1", "c"), "2", C)));
    EXPECT(r.c->claimed == 2 && r.c->owner[2] == 0);
    end(&r);
}

/* The server counts them in 64 bits. */
static void expect_epoch(const char *digits, bool makes_sense)
{
    reading r;
    char nodes[200];
    snprintf(nodes, sizeof nodes,
             A " 10.0.0.1:6379@16379 master - 0 0 %s connected 0-1\n", digits);
    EXPECT(says(&r, nodes, "*1\r\n" RANGE("0", "1", HOST("1", "a"), "1", A)) ==
           makes_sense);
    EXPECT(!makes_sense || r.c->node[0].epoch == atoll(digits));
    end(&r);
}

TEST_CASE(slotmap_reply, an_epoch_of_18_digits_is_read,
          expect_epoch("999999999999999999", true))
TEST_CASE(slotmap_reply, a_map_with_an_epoch_of_19_digits_is_none,
          expect_epoch("1000000000000000000", false))

TEST(slotmap_reply, fault_147_a_map_that_is_empty_or_absurd_is_none)
{
    static const char *const slots[] = {
        "*0\r\n",
        "*1\r\n:1\r\n",
        "+OK\r\n",
        "*1\r\n" RANGE("9", "1", HOST("1", "a"), "1", A),
        "*1\r\n" RANGE("0", "16384", HOST("1", "a"), "1", A),
        "*1\r\n" RANGE("-1", "1", HOST("1", "a"), "1", A),
        "*1\r\n" RANGE("0", "1", HOST("1", "a"), "0", A),
        "*1\r\n" RANGE("0", "1", HOST("1", "a"), "65536", A),
        "*1\r\n*2\r\n:0\r\n*3\r\n$1\r\na\r\n:1\r\n$40\r\n" A "\r\n",
    };
    reading r;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        EXPECT(!says(&r, NODES, slots[i]));
        end(&r);
    }
}

TEST(slotmap_reply, fault_147_a_list_of_servers_that_makes_no_sense_is_none)
{
    static const char *const nodes[] = {"rubbish\n", A " x master - 0 0 z c\n",
                                        A "\n"};
    reading r;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        EXPECT(!says(&r, nodes[i],
                     "*1\r\n" RANGE("0", "1", HOST("1", "a"), "1", A)));
        end(&r);
    }
}

TEST(slotmap_reply, fault_147_a_server_that_is_named_twice_is_the_first)
{
    reading r;
    EXPECT(says(&r, NODES A " 10.0.0.9:1@2 master - 0 0 99 connected\n",
                "*1\r\n" RANGE("0", "1", HOST("1", "a"), "1", A)));
    EXPECT(r.c->owner[0] == 1 && r.c->node[0].epoch == 7);
    end(&r);
}

TEST(slotmap_reply, fault_147_what_is_nested_nine_deep_is_refused)
{
    reading r;
    const char deep[] = "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"
                        ":1\r\n";
    begin(&r);
    EXPECT(!feed(&r, &r.c->slots, deep, strlen(deep)));
    end(&r);
}

TEST(slotmap_reply, fault_147_a_text_of_two_mebibytes_is_refused)
{
    reading r;
    size_t size = 2 * 1024 * 1024;
    char *bytes = malloc(size);
    EXPECT(bytes);
    memset(bytes, 'x', size);
    memcpy(bytes, "$2097100\r\n", 10);
    begin(&r);
    EXPECT(!feed(&r, &r.c->nodes, bytes, size));
    end(&r);
    free(bytes);
}

TEST(slotmap_reply, sixteen_thousand_ranges_are_read)
{
    reading r;
    char range[160];
    begin(&r);
    EXPECT(feed_nodes(&r, NODES));
    size_t size = RL_HASH_SLOTS * sizeof range, used;
    char *bytes = malloc(size);
    EXPECT(bytes);
    used = (size_t)sprintf(bytes, "*%d\r\n", RL_HASH_SLOTS);
    for (int i = 0; i < RL_HASH_SLOTS; i++)
        used += (size_t)sprintf(bytes + used,
                                "*3\r\n:%d\r\n:%d\r\n*3\r\n$1\r\na\r\n:1\r\n"
                                "$40\r\n%s\r\n",
                                i, i, i % 2 ? A : B);
    EXPECT(feed(&r, &r.c->slots, bytes, used));
    EXPECT(!r.c->absurd && r.c->claimed == RL_HASH_SLOTS);
    EXPECT(r.c->owner[0] == 2 && r.c->owner[16383] == 1);
    end(&r);
    free(bytes);
}

/* Whatever a later version may say of a range beside its ends and its servers. */
TEST(slotmap_reply, a_number_behind_a_range_is_none_of_its_ends)
{
    reading r;
    EXPECT(says(&r, NODES,
                "*1\r\n*4\r\n:2\r\n:3\r\n:9\r\n*4\r\n" HOST(
                    "8", "10.0.0.1") ":6379\r\n$40\r\n" A "\r\n*0\r\n"));
    EXPECT_INT(r.c->claimed, 2);
    EXPECT(r.c->owner[1] == 0 && r.c->owner[2] == 1 && r.c->owner[3] == 1 &&
           r.c->owner[4] == 0);
    end(&r);
}
