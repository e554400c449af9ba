#include "layouts.h"

rlock *lock_n(rlock_client *cl, rlock_layout layout, const void *name,
              size_t len)
{
    rlock *lk = NULL;
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    opts.layout = layout;
    EXPECT_STATUS(rlock_new_ex(cl, name, len, &opts, &lk), RLOCK_OK);
    return lk;
}

rlock *lock_of(rlock_client *cl, rlock_layout layout, const char *name)
{
    return lock_n(cl, layout, name, strlen(name));
}

/* --- scenes -------------------------------------------------------------- */

void use_layout(scene *s, rlock_layout layout)
{
    rlock_free(s->lk);
    s->lk = lock_of(s->cl, layout, SCENE_LOCK);
}

scene scene_of(rlock_layout layout, int64_t lease_ms)
{
    scene s = scene_start(lease_ms, 0);
    use_layout(&s, layout);
    return s;
}

scene scene_of_proxied(rlock_layout layout, int64_t lease_ms,
                       int64_t timeout_ms)
{
    scene s = scene_proxied(lease_ms, timeout_ms);
    use_layout(&s, layout);
    return s;
}

scene scene_of_held(rlock_layout layout, int64_t lease_ms)
{
    scene s = scene_of(layout, lease_ms);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    return s;
}

rival rival_of(const scene *s, rlock_layout layout)
{
    rival r = {.cl = server_client(s->sv, NULL)};
    r.lk = lock_of(r.cl, layout, SCENE_LOCK);
    return r;
}

const char *script_of(rlock_layout layout, const char *verb)
{
    char name[64];
    snprintf(name, sizeof name, "%s/%s",
             layout == RLOCK_LAYOUT_STRING ? "string" : "timestamp", verb);
    return proxy_sha(name);
}

/* --- what is there ------------------------------------------------------- */

bool held_on_server(server *sv)
{
    return server_int(sv, "EXISTS " SCENE_LOCK) == 1;
}

text value_of(server *sv)
{
    text t;
    snprintf(t.is, sizeof t.is, "%s", server_str(sv, "GET " SCENE_LOCK));
    return t;
}

void expect_value(server *sv, const char *wanted)
{
    EXPECT_STR(value_of(sv).is, wanted);
}
