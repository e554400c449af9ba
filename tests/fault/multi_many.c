/*
 * The members of one server are taken by one call, and freed by one: what is
 * wrong with the call, or with one of them, ends no other.
 */
#include "multi_scene.h"

/* From there on this handle's members are asked one by one. */
static void expect_one_by_one(scene *s, multi_scene *m)
{
    EXPECT_STATUS(rlock_unlock(m->all), RLOCK_OK);
    expect_nothing_left(s->sv);
    int many = proxy_count(s->px, proxy_sha("take_many"));
    EXPECT_STATUS(rlock_trylock(m->all), RLOCK_OK);
    EXPECT(multi_scene_all_at(m, 1));
    EXPECT_STATUS(rlock_unlock(m->all), RLOCK_OK);
    EXPECT_INT(proxy_count(s->px, proxy_sha("take_many")), many);
    EXPECT_INT(proxy_count(s->px, proxy_sha("free_many")), 0);
}

/* As a cluster does, a proxy, or a server that is short of rights. */
TEST(multi_many, a_call_that_is_refused_as_a_whole_is_made_one_by_one)
{
    const char *answers[] = {
        "-CROSSSLOT Keys in request don't hash to the same slot\r\n",
        "-NOPERM No permissions to access a key\r\n",
        "-ERR unknown command\r\n"};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        scene s = scene_proxied(0, 0);
        multi_scene m = multi_scene_of(&s, "abcde");
        proxy_rule(s.px, proxy_sha("take_many"), 1, PROXY_ANSWER, answers[i]);
        EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
        EXPECT(proxy_fired(s.px) && multi_scene_all_at(&m, 1));
        expect_one_by_one(&s, &m);
        multi_scene_end(&m, &s);
    }
}

/* An unlock, too; it has no order to keep. */
TEST(multi_many, an_unlock_that_is_refused_as_a_whole_is_made_one_by_one)
{
    scene s = scene_proxied(0, 0);
    multi_scene m = multi_scene_of(&s, "abcde");
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("free_many"), 1, PROXY_ANSWER,
               "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(proxy_count(s.px, proxy_sha("release")), 5);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

/* Nobody knows what was executed: each is asked for itself, and in doubt. */
static void answer_nonsense(const char *answer)
{
    scene s = scene_proxied(0, 0);
    multi_scene m = multi_scene_of(&s, "abcde");
    proxy_rule(s.px, proxy_sha("take_many"), 1, PROXY_ANSWER, answer);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    EXPECT(proxy_fired(s.px) && multi_scene_all_at(&m, 1));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT_INT(server_cmd(s.sv, "KEYS rlock_undone:*")->elements, m.n);
    multi_scene_end_undone(&m, &s);
}

TEST_CASE(multi_many, too_few_tokens_are_no_answer,
          answer_nonsense("$1\r\n7\r\n"))
TEST_CASE(multi_many, that_a_sixth_of_five_is_busy_is_no_answer,
          answer_nonsense(":6\r\n"))

/* One is gone, and one is no lock any more: the others are free. */
TEST(multi_many, an_unlock_goes_through_all_whatever_is_wrong_with_some)
{
    scene s = scene_proxied(0, 0);
    multi_scene m = multi_scene_of(&s, "abcde");
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    server_cmd(s.sv, "SET d x");
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_EWRONGTYPE);
    expect_blame(4);
    EXPECT_INT(proxy_count(s.px, proxy_sha("free_many")), 1);
    EXPECT_INT(proxy_count(s.px, proxy_sha("release")), 1);
    EXPECT_INT(server_int(s.sv, "DEL d"), 1);
    expect_nothing_left(s.sv);
    multi_scene_end_with_losses(&m, &s, 1);
}
