#include "gate.h"

struct gate_waiter {
    rlock_latch *l;
    int64_t wait_ms, at_ms;
    rlock_status status;
    test_thread *thread;
};

rlock_latch *test_latch(rlock_client *cl, const char *name)
{
    rlock_latch *l;
    EXPECT_STATUS(rlock_latch_new(cl, name, &l), RLOCK_OK);
    return l;
}

int64_t left_of(rlock_latch *l)
{
    int64_t left;
    EXPECT_STATUS(rlock_latch_count(l, &left), RLOCK_OK);
    return left;
}

static intptr_t wait_there(void *arg)
{
    gate_waiter *w = arg;
    w->status = rlock_latch_wait(w->l, w->wait_ms);
    w->at_ms = test_now_ms();
    return 0;
}

gate_waiter *gate_wait(rlock_latch *l, int64_t wait_ms)
{
    gate_waiter *w = calloc(1, sizeof *w);
    EXPECT(w);
    w->l = l;
    w->wait_ms = wait_ms;
    w->thread = test_spawn(wait_there, w);
    return w;
}

bool gate_has_returned(gate_waiter *w)
{
    return test_done(w->thread);
}

rlock_status gate_end(gate_waiter *w, int64_t *at_ms)
{
    test_join(w->thread);
    rlock_status s = w->status;
    if (at_ms)
        *at_ms = w->at_ms;
    free(w);
    return s;
}

void gate_await_queue(server *sv, const char *name, int clients)
{
    EVENTUALLY(SOON, queued(sv, name) == clients);
}

void expect_gate_gone(server *sv, const char *name)
{
    EXPECT(!key_exists(sv, name));
    EXPECT_INT(queued(sv, name), 0);
    redisReply *keys = server_cmd(sv, "KEYS *");
    char mark[200];
    for (size_t n = keys->elements; n > 0; n--) {
        keys = server_cmd(sv, "KEYS *");
        snprintf(mark, sizeof mark, "%s", keys->element[n - 1]->str);
        EXPECT_CONTAINS(mark, "rlock_undone:");
        EXPECT_BETWEEN(key_ttl(sv, mark), 1, 120000);
    }
}
