/*
 * Locks that are a string or a timestamp need no more rights than the documents
 * say.
 */
#include "layouts.h"

/* The command as it stands in the documents, on one line. */
static void make_documented_user(server *sv)
{
    char page[100000], *begin, *end;
    FILE *f = fopen(RLOCK_SOURCE_DIR "/src/doc/rights.md", "r");
    EXPECT(f != NULL);
    page[fread(page, 1, sizeof page - 1, f)] = '\0';
    fclose(f);
    begin = strstr(page, "ACL SETUSER app ");
    EXPECT(begin != NULL);
    end = strstr(begin, "\n```");
    EXPECT(end != NULL);
    *end = '\0';
    for (char *p = begin; *p; p++)
        *p = *p == '\n' ? ' ' : *p;
    EXPECT_STR(server_str(sv, begin), "OK");
}

/* But INFO, which is only asked for a warning. */
static void expect_nothing_denied(server *sv)
{
    redisReply *log = server_cmd(sv, "ACL LOG");
    EXPECT_INT(log->type, REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < log->elements; i++)
        EXPECT_STR(log->element[i]->element[7]->str, "info");
}

/* A user that may do no more than the documents say. */
static scene scene_of_app(rlock_layout layout, char *uri, size_t size)
{
    scene s = scene_server(NULL);
    make_documented_user(s.sv);
    snprintf(uri, size, "unix://app:PASSWORD@%s", server_path(s.sv));
    s.opts.uri = uri;
    scene_client(&s, 900, 0);
    rlock_free(s.lk);
    s.lk = lock_of(s.cl, layout, "orders:1");
    return s;
}

BOTH(layouts_rights, the_documented_rights_suffice)
{
    char uri[300];
    rlock_holder h;
    scene s = scene_of_app(layout, uri, sizeof uri);
    rlock_client *cl = server_client(s.sv, &s.opts);
    rlock *other = lock_of(cl, layout, "orders:1");
    EXPECT_STR(server_str(s.sv, "SCRIPT FLUSH"), "OK");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(other, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_holder_info(other, &h, sizeof h), RLOCK_OK);
    expect_renewals(&s, 4);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    waiter *w = waiter_start(other, RLOCK_FOREVER, 60000);
    EVENTUALLY(SOON,
               queued(s.sv, "orders:1") == 1 && stats_of(cl).waiting_now == 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(stats_of(cl).wakeups, 1);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(other), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    expect_nothing_denied(s.sv);
    rlock_free(other);
    rlock_client_free(cl);
    scene_stop(&s);
}

BOTH(layouts_rights, the_documented_rights_suffice_to_undo)
{
    char uri[300];
    scene s = scene_of_app(layout, uri, sizeof uri);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK); /* it is connected */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    server_hold_back(s.sv, 100);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 30), RLOCK_EIO);
    EVENTUALLY(SOON, server_cmd(s.sv, "KEYS rlock_undone:*")->elements == 1);
    EVENTUALLY(SOON, server_int(s.sv, "EXISTS orders:1") == 0);
    expect_nothing_denied(s.sv);
    scene_stop(&s);
}

TEST(layouts_rights, timestamp_the_documented_rights_suffice_for_old_keys)
{
    char uri[300];
    scene s = scene_of_app(RLOCK_LAYOUT_TIMESTAMP, uri, sizeof uri);
    server_cmd(s.sv, "SET orders:1 %s", stamp_at(server_ms(s.sv) + 300).is);
    EXPECT_STATUS(rlock_acquire(s.lk, SOON, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_denied(s.sv);
    scene_stop(&s);
}
