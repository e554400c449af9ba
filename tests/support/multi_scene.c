#include "multi_scene.h"

void multi_scene_add(multi_scene *m, server *sv, rlock_client *cl,
                     const char *names)
{
    for (; *names; names++) {
        m->name[m->n][0] = *names;
        m->sv[m->n] = sv;
        m->lk[m->n] = test_lock(cl, m->name[m->n]);
        m->n++;
    }
}

void multi_scene_join(multi_scene *m)
{
    EXPECT_STATUS(rlock_multi_new(m->lk, m->n, &m->all), RLOCK_OK);
}

multi_scene multi_scene_of_client(server *sv, rlock_client *cl,
                                  const char *names)
{
    multi_scene m = {0};
    multi_scene_add(&m, sv, cl, names);
    multi_scene_join(&m);
    return m;
}

multi_scene multi_scene_of(const scene *s, const char *names)
{
    return multi_scene_of_client(s->sv, s->cl, names);
}

multi_scene multi_scene_across(const scene *s, const char *names,
                               const scene *t, const char *others)
{
    multi_scene m = {0};
    multi_scene_add(&m, s->sv, s->cl, names);
    multi_scene_add(&m, t->sv, t->cl, others);
    multi_scene_join(&m);
    return m;
}

void multi_scene_free(multi_scene *m)
{
    rlock_free(m->all);
    for (size_t i = 0; i < m->n; i++)
        rlock_free(m->lk[i]);
}

void multi_scene_end(multi_scene *m, scene *s)
{
    multi_scene_free(m);
    scene_stop(s);
}

void multi_scene_end_across(multi_scene *m, scene *s, scene *t)
{
    multi_scene_end(m, s);
    scene_stop(t);
}

/* Without its client, nothing more can be told. */
void multi_scene_end_with_losses(multi_scene *m, scene *s, int losses)
{
    multi_scene_free(m);
    scene_free_client(s);
    EXPECT_INT(events_count(s->ev, RLOCK_EVENT_LOST), losses);
    scene_stop(s);
}

void multi_scene_end_undone(multi_scene *m, scene *s)
{
    multi_scene_free(m);
    scene_free_client(s);
    expect_all_undone(s->sv);
    scene_stop(s);
}

void expect_blame(size_t position)
{
    char head[32];
    snprintf(head, sizeof head, "member %zu: ", position);
    const char *message = rlock_last_error()->message;
    if (strncmp(message, head, strlen(head)) != 0)
        FAIL("\"%s\" does not begin with \"%s\"", message, head);
}

void asleep(server *sv, const char *name, rlock_client *cl)
{
    EVENTUALLY(20000, queued(sv, name) == 1 && stats_of(cl).waiting_now == 1);
}

bool multi_scene_is_at(const multi_scene *m, size_t i, int wanted)
{
    return levels(m->sv[i], m->name[i]) == wanted;
}

bool multi_scene_all_at(const multi_scene *m, int wanted)
{
    for (size_t i = 0; i < m->n; i++)
        if (!multi_scene_is_at(m, i, wanted))
            return false;
    return true;
}

void expect_levels(const multi_scene *m, int wanted)
{
    for (size_t i = 0; i < m->n; i++)
        EXPECT_INT(levels(m->sv[i], m->name[i]), wanted);
}

void expect_unheld(const rlock *lk)
{
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_hold_count(lk), 0);
    EXPECT_INT(rlock_valid_ms(lk), 0);
    EXPECT(rlock_token(lk) == 0);
}

void expect_blame_of(size_t position, const char *name)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", name);
    expect_blame(position);
    EXPECT_CONTAINS(rlock_last_error()->message, quoted);
}
