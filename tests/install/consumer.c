/* consumer URI: a program with nothing but the installed library. */
#include <rlock/rlock.h>

#include <stdio.h>

#ifdef RLOCK_SCOPED_LOCK
static bool deeper(rlock_client *cl)
{
    RLOCK_SCOPED_LOCK(lk, cl, "consumer");
    return lk && rlock_hold_count(lk) == 3;
}
#endif

static bool nested(rlock_client *cl, rlock *lk)
{
    (void)cl;
    if (rlock_lock(lk) != RLOCK_OK)
        return false;
#ifdef RLOCK_SCOPED
    RLOCK_SCOPED(lk);
    return rlock_hold_count(lk) == 2 && deeper(cl);
#else
    return rlock_hold_count(lk) == 2 && rlock_unlock(lk) == RLOCK_OK;
#endif
}

#ifdef __cplusplus
#define NOTHING nullptr
bool options_are_right();
#else
#define NOTHING NULL
static bool options_are_right(void)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    return opts.size == sizeof opts && !opts.uri;
}
#endif

#if RLOCK_VERSION_NUMBER < 300
#error "an older rlock than the one that was installed"
#endif

int main(int argc, char **argv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NOTHING;
    rlock *lk = NOTHING;
    bool ok;

    opts.uri = argc > 1 ? argv[1] : NOTHING;
    ok = options_are_right() && rlock_client_new(&opts, &cl) == RLOCK_OK &&
         rlock_new(cl, "consumer", &lk) == RLOCK_OK &&
         rlock_lock(lk) == RLOCK_OK && nested(cl, lk) &&
         rlock_hold_count(lk) == 1 && rlock_unlock(lk) == RLOCK_OK;
    if (!ok)
        fprintf(stderr, "consumer: %s\n", rlock_last_error()->message);
    rlock_free(lk);
    rlock_client_free(cl);
    return ok ? 0 : 1;
}
