#include "client.h"

const char *message(void)
{
    return rlock_last_error()->message;
}

void expect_no_secret(void)
{
    EXPECT(!strstr(message(), SECRET));
}

void expect_refused(const rlock_options *opts, rlock_status wanted)
{
    rlock_client *cl = (rlock_client *)opts;
    EXPECT_STATUS(rlock_client_new(opts, &cl), wanted);
    EXPECT(!cl);
    EXPECT_STATUS(rlock_last_error()->status, wanted);
    EXPECT(*message());
    expect_no_secret();
}

void expect_uri_refused(const char *uri, rlock_status wanted)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = uri;
    expect_refused(&opts, wanted);
}

void expect_uri_works(server *sv, const char *uri, int db)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = uri;
    rlock_client *cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STR(server_str(sv, "SELECT %d", db), "OK");
    EXPECT_INT(server_int(sv, "HLEN job"), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(server_int(sv, "HLEN job"), 0);
    rlock_free(lk);
    rlock_client_free(cl);
}

server *server_of_alice(void)
{
    server *sv = server_start_tcp(NULL);
    EXPECT_STR(server_str(sv, "ACL SETUSER alice on >" SECRET " ~* &* +@all"),
               "OK");
    return sv;
}

intptr_t wait_and_unlock(void *lk)
{
    rlock_status s = rlock_acquire(lk, SOON, RLOCK_WATCHDOG);
    return s == RLOCK_OK ? rlock_unlock(lk) : s;
}
