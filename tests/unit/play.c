#include "play.h"

#include <errno.h>

#include "base/random.h"
#include "op/round.h"
#include "op/rule.h"

const rl_target play_job = {.name = "job",
                            .len = 3,
                            .scope = RLOCK_LAYOUT_HASH,
                            .layout = RLOCK_LAYOUT_HASH};
const rl_target play_tokenless = {.name = "job",
                                  .len = 3,
                                  .scope = RLOCK_LAYOUT_HASH,
                                  .layout = RL_LAYOUT_TOKENLESS};
const rl_target play_red = {.name = "job",
                            .len = 3,
                            .scope = RL_SINGLE_SCOPES,
                            .layout = RLOCK_LAYOUT_HASH};

/* --- who is told ---------------------------------------------------------- */

static void note_event(const rlock_event *ev, void *arg)
{
    play *p = arg;
    p->told = *ev;
    snprintf(p->said, sizeof p->said, "%s", ev->message);
    p->events[ev->type]++;
}

static void ref_home(rl_home *home)
{
    RL_CONTAINER(home, play, home)->homes++;
}

static void unref_home(rl_home *home)
{
    RL_CONTAINER(home, play, home)->homes--;
}

static bool tell_home(rl_home *home, const rlock_event *ev)
{
    note_event(ev, RL_CONTAINER(home, play, home));
    return true;
}

static void wake_op(rl_waker *w, rl_wake why, unsigned node)
{
    play *p = RL_CONTAINER(w, play, waker);
    p->why = why > p->why ? why : p->why;
    if (why == RL_WAKE_RUNG && p->op)
        p->op->rung |= 1u << node;
}

static play_client *client_of(rl_holds *t)
{
    return RL_CONTAINER(t, play_client, core.holds);
}

static void wake_keeper(rl_due_queue *l)
{
    client_of(l->arg)->wakes[PLAY_KEEPER]++;
}

static void wake_notifier(rl_holds *t)
{
    client_of(t)->wakes[PLAY_NOTIFIER]++;
}

/* --- the stage ------------------------------------------------------------ */

static void name_server(rl_core *c, unsigned number)
{
    char run_id[RL_RUN_ID_MAX];
    int len = snprintf(run_id, sizeof run_id, "run of server %u", number);
    rl_item told[2] = {
        {.type = REDIS_REPLY_STRING, .str = run_id, .len = (size_t)len},
        {.type = REDIS_REPLY_INTEGER, .integer = 1}};
    EXPECT(rl_server_run_note(&c->server_run, told, PLAY_BEGAN_US));
}

void play_open_core(play *p, rl_core *c, unsigned number)
{
    c->set = (rl_settings){.connect_timeout_ms = PLAY_TIMEOUT_MS,
                           .command_timeout_ms = PLAY_TIMEOUT_MS,
                           .watchdog_lease_ms = PLAY_LEASE_MS,
                           .process = "host:1",
                           .on_event = note_event,
                           .event_arg = p};
    c->server = "a server";
    snprintf(c->bell, sizeof c->bell, "rlock_bell:of client %u", number);
    rl_server_run_init(&c->server_run);
    name_server(c, number);
    EXPECT(rl_holds_init(&c->holds, &c->stats, &c->rooms, c->set.process,
                         PLAY_LEASE_MS, 0, true));
    EXPECT(rl_rooms_init(&c->rooms) && rl_longest_init(&c->longest));
    rl_script_cache_init(&c->script_cache);
}

static void ignore_move(rl_redirects *r, unsigned slot, const char *host,
                        int port)
{
    (void)r;
    (void)slot;
    (void)host;
    (void)port;
}

static unsigned know_nobody(rl_redirects *r, unsigned slot, const char *host,
                            int port)
{
    ignore_move(r, slot, host, port);
    return 0;
}

static void ignore_trouble(rl_redirects *r)
{
    (void)r;
}

void play_in_cluster(play *p, size_t i)
{
    p->redirects = (rl_redirects){ignore_move, know_nobody, ignore_trouble};
    play_core(p, i)->redirects = &p->redirects;
    play_core(p, i)->patient = true;
}

void play_close_core(rl_core *c)
{
    rl_stats_fini(&c->stats, false);
    rl_rooms_fini(&c->rooms, false);
    rl_longest_fini(&c->longest, false);
    rl_script_cache_fini(&c->script_cache, false);
    rl_holds_fini(&c->holds, false);
    rl_server_run_fini(&c->server_run);
}

static void open_client(play *p, size_t i)
{
    play_client *pc = &p->client[i];
    rl_core *c = &pc->core;
    play_open_core(p, c, (unsigned)i);
    EXPECT(rl_line_init(&pc->line));
    c->holds.first.arg = &c->holds;
    c->holds.first.wake = wake_keeper;
    c->holds.wake = wake_notifier;
}

void play_open(play *p, size_t clients)
{
    memset(p, 0, sizeof *p);
    p->now_us = PLAY_BEGAN_US;
    p->next = RL_DONE;
    p->n = clients;
    p->owner = (rl_owner){.serial = 1, .tid = 11};
    p->rival = (rl_owner){.serial = 2, .tid = 12};
    p->waker.wake = wake_op;
    p->home = (rl_home){.ref = ref_home,
                        .unref = unref_home,
                        .tell = tell_home,
                        .has_on_event = true,
                        .stats = &p->client[0].core.stats};
    for (size_t i = 0; i < clients; i++)
        open_client(p, i);
}

static void fail_line(play *p, play_client *pc)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, 0, "the connection broke");
    rl_line_fail(&pc->line, &f, p->now_us);
}

void play_close(play *p)
{
    for (size_t i = 0; i < p->n; i++) {
        play_client *pc = &p->client[i];
        fail_line(p, pc);
        rl_line_fini(&pc->line);
        play_close_core(&pc->core);
    }
    EXPECT_INT(p->homes, 0);
}

void play_pass(play *p, int64_t us)
{
    p->now_us += us;
}

/* --- the driver ----------------------------------------------------------- */

/* "$3\r\njob\r\n" at *at; false: there is none. */
static bool take_word(const char **at, const char *end, char *into, size_t size)
{
    char *text;
    if (*at == end || **at != '$')
        return false;
    size_t len = strtoul(*at + 1, &text, 10);
    snprintf(into, size, "%.*s", (int)len, text + 2);
    *at = text + 2 + len + 2;
    return true;
}

/* Notes the words of the latest call, and has the kernel take its bytes. Each has
   as many as it says. */
static void send(play_client *pc)
{
    const char *at;
    size_t n = rl_line_bytes(&pc->line, &at);
    long left = 0;
    if (n == 0)
        return;
    const char *end = at + n;
    for (pc->words = 0; at != end; pc->words += pc->words < PLAY_WORDS) {
        if (*at == '*') {
            EXPECT_INT(left, 0);
            left = atol(at + 1);
            pc->words = 0;
            at = strchr(at, '\n') + 1;
        }
        if (!take_word(&at, end, pc->word[pc->words], sizeof pc->word[0]))
            break;
        left--;
    }
    EXPECT(at == end && left == 0);
    rl_line_sent(&pc->line, n);
}

static void renew_line(play_client *pc)
{
    rl_line_fini(&pc->line);
    EXPECT(rl_line_init(&pc->line));
    pc->lines++;
}

static play_client *server_of(const rl_part *x)
{
    return RL_CONTAINER(x->core, play_client, core);
}

static void miss(play *p, rl_part *x)
{
    rl_fault_set(&x->fault, RLOCK_EIO, 0, "nobody is at home");
    rl_ask_miss(&x->ask, p->now_us);
}

/* By the script an ask knows whether a server has it, and what it may answer. */
static void look_at_script(const play_client *pc, const rl_ask *a)
{
    if (a->next == RL_ASK_WAITS && !rl_ask_is_guarded(a) && !a->whole &&
        !a->confirm.replicas)
        EXPECT_STR(pc->word[1], rl_scripts[a->script].sha1);
}

static void push(play *p, rl_part *x)
{
    play_client *pc = server_of(x);
    if (pc->away) {
        miss(p, x);
        return;
    }
    if (pc->line.failed || pc->line.retired)
        renew_line(pc);
    if (rl_part_is_moot(x) ||
        (p->op->may_ask && !p->op->may_ask(p->op, x, p->now_us))) {
        rl_ask_refuse(&x->ask, p->now_us);
        return;
    }
    pc->calls++;
    rl_part_push(x, &pc->line, p->now_us);
    send(pc);
    look_at_script(pc, &x->ask);
}

static bool is_open(const rl_part *x)
{
    return rl_part_is_open(x) && x->ask.next != RL_ASK_WAITS &&
           x->ask.next != RL_ASK_RESTS;
}

static void push_all(play *p)
{
    for (size_t i = 0; i < p->op->n; i++)
        while (is_open(p->op->part[i]))
            push(p, p->op->part[i]);
}

/* An errno is of the system, and so its words are there, too. */
static void look_at_faults(const rl_op *op)
{
    for (size_t i = 0; i < op->n; i++) {
        const rl_part *x = op->part[i];
        if (!x || !x->over || !*x->fault.text)
            continue;
        EXPECT_BETWEEN(x->fault.status, RLOCK_OK, RLOCK_EDEADLK);
        EXPECT(x->fault.sys_errno == 0 || x->fault.sys_errno == ETIMEDOUT ||
               strstr(x->fault.text, strerror(x->fault.sys_errno)));
    }
}

/* A round, as long as there is one and it is over at once. */
static rl_next go_on(play *p)
{
    while (p->next == RL_ASK) {
        push_all(p);
        look_at_faults(p->op);
        if (!rl_rule_is_decided(p->op))
            break;
        rl_round_end(p->op, p->now_us);
        p->next = p->op->resume(p->op, RL_WAKE_NONE, p->now_us);
        if (p->next == RL_SLEEP)
            rl_op_tell(p->op);
    }
    return p->next;
}

static rl_next resume(play *p, rl_wake why)
{
    p->next = p->op->resume(p->op, why, p->now_us);
    if (p->next == RL_SLEEP)
        rl_op_tell(p->op);
    return go_on(p);
}

rl_next play_begin(play *p, rl_op *op)
{
    p->op = op;
    op->waker = &p->waker;
    return resume(p, RL_WAKE_NONE);
}

void play_forget(play *p)
{
    p->op = NULL;
    p->next = RL_DONE;
}

rl_next play_answer(play *p, size_t i, const char *reply)
{
    play_client *pc = &p->client[i];
    rl_line_feed(&pc->line, reply, strlen(reply), p->now_us);
    send(pc); /* a script that went whole */
    return go_on(p);
}

rl_next play_answer_all(play *p, const char *reply)
{
    rl_next next = RL_ASK;
    for (size_t i = 0; i < p->n && next == RL_ASK; i++)
        next = play_answer(p, i, reply);
    return next;
}

rl_next play_cut(play *p, size_t i)
{
    fail_line(p, &p->client[i]);
    return go_on(p);
}

rl_next play_rest(play *p)
{
    int64_t until_us = RL_NEVER;
    EXPECT(rl_round_rests(p->op));
    for (size_t i = 0; i < p->op->n; i++) {
        const rl_part *x = p->op->part[i];
        if (rl_part_is_open(x) && x->ask.next == RL_ASK_RESTS)
            until_us = rl_min(until_us, x->ask.rest_until_us);
    }
    p->now_us = rl_max(p->now_us, until_us);
    rl_round_wake(p->op, p->now_us);
    return go_on(p);
}

rl_next play_lose(play *p, size_t i)
{
    p->client[i].away = true;
    return play_cut(p, i);
}

/* What a real driver does by the part's limits. */
static void note_silence(play *p, size_t i, bool silent)
{
    for (size_t k = 0; k < p->op->n; k++) {
        rl_part *x = p->op->part[k];
        if (!x || x->over || x->core != play_core(p, i))
            continue;
        x->slow = true;
        x->silent = silent;
    }
}

rl_next play_slow(play *p, size_t i)
{
    note_silence(p, i, false);
    return go_on(p);
}

rl_next play_silent(play *p, size_t i)
{
    note_silence(p, i, true);
    return go_on(p);
}

rl_next play_wake(play *p)
{
    rl_wake why = p->why;
    p->why = RL_WAKE_NONE;
    return resume(p, why);
}

rl_next play_sleep(play *p)
{
    EXPECT(p->op->sleep_us != RL_NEVER);
    if (p->now_us < p->op->sleep_us)
        p->now_us = p->op->sleep_us;
    return play_wake(p);
}

/* --- what was said -------------------------------------------------------- */

const char *play_word(play *p, size_t i, int n)
{
    const play_client *pc = &p->client[i];
    n = n < 0 ? pc->words + n : n;
    EXPECT_BETWEEN(n, 0, pc->words - 1);
    return pc->word[n];
}

static int keys_said(play *p, size_t i)
{
    return atoi(play_word(p, i, 2));
}

const char *play_key(play *p, size_t i, int n)
{
    EXPECT_BETWEEN(n, 1, keys_said(p, i));
    return play_word(p, i, 2 + n);
}

int play_args(play *p, size_t i)
{
    return p->client[i].words - 3 - keys_said(p, i);
}

const char *play_arg(play *p, size_t i, int n)
{
    EXPECT_BETWEEN(n, 1, play_args(p, i));
    return play_word(p, i, 2 + keys_said(p, i) + n);
}

const char *play_called(play *p, size_t i)
{
    const char *sum = play_word(p, i, 1);
    for (int k = 0; k < RL_SCRIPT_COUNT; k++)
        if (strcmp(rl_scripts[k].sha1, sum) == 0)
            return rl_scripts[k].name;
    return sum;
}

/* --- holds ---------------------------------------------------------------- */

play_id play_holder(const rl_hold *h)
{
    play_id id;
    rl_hold_write_id(h, id.text);
    return id;
}

rl_hold *play_draft(play *p, size_t i, const rl_target *what, int64_t lease_ms)
{
    rl_core *c = play_core(p, i);
    rl_uuid id;
    EXPECT(rl_uuid_new(&id));
    rl_owner_record *room = rl_holds_make_room(&c->holds, &p->owner);
    EXPECT(room);
    rl_hold *h = rl_draft(c, room, what, &id, lease_ms);
    EXPECT(h);
    return h;
}

static void grant(play *p, size_t i, rl_hold *h, bool renewed)
{
    rl_holds *t = &play_core(p, i)->holds;
    rl_hold_expect(h, p->now_us, h->lease_ms);
    rl_mutex_lock(&t->mutex);
    rl_hold_grant_locked(t, h, 100, p->now_us, renewed, p->now_us);
    rl_mutex_unlock(&t->mutex);
}

rl_hold *play_hold(play *p, size_t i, const char *name, int64_t lease_ms)
{
    rl_target what = play_job;
    what.name = name;
    what.len = strlen(name);
    rl_hold *h = play_draft(p, i, &what, lease_ms);
    grant(p, i, h, lease_ms == RLOCK_WATCHDOG);
    return h;
}

rl_hold *play_member(play *p, size_t i, const rl_target *what, rl_group *g,
                     int64_t lease_ms)
{
    rl_hold *h = play_draft(p, i, what, lease_ms);
    h->group = g;
    h->member = (uint8_t)i;
    rl_group_ref(g);
    if (g->quorum)
        rl_group_join(g, h->member, g->began_us, RL_NEVER);
    grant(p, i, h, lease_ms == RLOCK_WATCHDOG);
    return h;
}

void play_listen(rl_core *c, const rl_target *what)
{
    (void)what;
    RL_CONTAINER(c, play_client, core)->listens++;
}

void play_one(play *p, rl_op *op, rl_part *x)
{
    (void)p;
    rl_op_init(op, &op->lent);
    x->op = op;
    op->n = op->quorum = 1;
    op->lent = x;
}
