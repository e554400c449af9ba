#include "set.h"

void set_add(set *m, server *sv, rlock_client *cl, const char *names)
{
    for (; *names; names++) {
        m->name[m->n][0] = *names;
        m->sv[m->n] = sv;
        m->lk[m->n] = test_lock(cl, m->name[m->n]);
        m->n++;
    }
}

void set_join(set *m)
{
    EXPECT_STATUS(rlock_multi_new(m->lk, m->n, &m->all), RLOCK_OK);
}

set set_of_client(server *sv, rlock_client *cl, const char *names)
{
    set m = {0};
    set_add(&m, sv, cl, names);
    set_join(&m);
    return m;
}

set set_of(const scene *s, const char *names)
{
    return set_of_client(s->sv, s->cl, names);
}

set set_across(const scene *s, const char *names, const scene *t,
               const char *others)
{
    set m = {0};
    set_add(&m, s->sv, s->cl, names);
    set_add(&m, t->sv, t->cl, others);
    set_join(&m);
    return m;
}

void set_free(set *m)
{
    rlock_free(m->all);
    for (size_t i = 0; i < m->n; i++)
        rlock_free(m->lk[i]);
}

void set_end(set *m, scene *s)
{
    set_free(m);
    scene_stop(s);
}

void set_end_across(set *m, scene *s, scene *t)
{
    set_end(m, s);
    scene_stop(t);
}

/* Without its client, nothing more can be told. */
void set_end_with_losses(set *m, scene *s, int losses)
{
    set_free(m);
    scene_free_client(s);
    EXPECT_INT(events_count(s->ev, RLOCK_EVENT_LOST), losses);
    scene_stop(s);
}

void set_end_undone(set *m, scene *s)
{
    set_free(m);
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

bool set_is_at(const set *m, size_t i, int wanted)
{
    return levels(m->sv[i], m->name[i]) == wanted;
}

bool set_all_at(const set *m, int wanted)
{
    for (size_t i = 0; i < m->n; i++)
        if (!set_is_at(m, i, wanted))
            return false;
    return true;
}

void expect_levels(const set *m, int wanted)
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
