#include "stub.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/transport.h"
#include "shim.h"
#include "wire/script.h"

/* Transports tell whose they are by their descriptor alone. */
static stub *the_stub;

static stub_conn *conn_of(int fd)
{
    for (int i = 0; i < STUB_CONNS; i++)
        if (the_stub->conn[i].of && the_stub->conn[i].of->io.fd == fd)
            return &the_stub->conn[i];
    FAIL("nobody's descriptor: %d", fd);
    return NULL;
}

/* --- what is asked -------------------------------------------------------- */

static const char *script_name(const char *sha1)
{
    for (int i = 0; i < RL_SCRIPT_COUNT; i++)
        if (strncmp(rl_scripts[i].sha1, sha1, 40) == 0)
            return rl_scripts[i].name;
    return "?";
}

static void put_word(stub *b, const char *word, size_t len)
{
    bool sha = len == 40 && b->len >= 8 &&
               memcmp(b->log + b->len - 8, "EVALSHA ", 8) == 0;
    const char *shown = sha ? script_name(word) : word;
    size_t n = sha ? strlen(shown) : len;
    EXPECT(b->len + n + 2 < sizeof b->log);
    memcpy(b->log + b->len, shown, n);
    b->len += n;
    b->log[b->len++] = ' ';
}

/* The bytes of the first command, which goes into the log; 0: it is not whole. */
static size_t read_command(stub *b, const char *in, size_t len)
{
    char *at;
    const char *end = in + len;
    if (len == 0 || !memchr(in, '\n', len))
        return 0;
    EXPECT_INT(*in, '*');
    size_t began = b->len;
    long words = strtol(in + 1, &at, 10);
    for (at += 2; words > 0; words--) {
        char *size_end;
        if (at >= end || !memchr(at, '\n', (size_t)(end - at)))
            break;
        long n = strtol(at + 1, &size_end, 10);
        at = size_end + 2;
        if (n + 2 > end - at)
            break;
        put_word(b, at, (size_t)n);
        at += n + 2;
    }
    if (words > 0) {
        b->len = began;
        return 0;
    }
    b->log[b->len - 1] = '\n';
    b->log[b->len] = '\0';
    return (size_t)(at - in);
}

/* --- what is answered ----------------------------------------------------- */

static stub_row *row_of(stub *b, const char *command)
{
    for (size_t i = b->rows; i > 0; i--) {
        stub_row *r = &b->row[i - 1];
        if (strncmp(command, r->words, strlen(r->words)) != 0)
            continue;
        r->seen++;
        if (r->nth == 0 || r->seen == r->nth)
            return r;
    }
    FAIL("nobody knows what to answer to %s", command);
    return NULL;
}

static void pass(stub *b, int64_t ms)
{
    b->passed_ms += ms;
    shim_clock(shim_everywhere(), CLOCK_BOOTTIME, b->passed_ms);
}

static void answer(stub_conn *c, const char *command)
{
    stub *b = the_stub;
    stub_row *r = row_of(b, command);
    if (b->hear)
        b->hear(b, command);
    if (r->ms)
        pass(b, r->ms);
    if (c->hung_up)
        return;
    c->hung_up = !r->answer;
    if (c->hung_up)
        shutdown(c->peer, SHUT_RDWR);
    else
        EXPECT_INT(write(c->peer, r->answer, strlen(r->answer)),
                   strlen(r->answer));
}

static ssize_t take(rl_transport *t, const char *bytes, size_t n, rl_fault *f)
{
    stub *b = the_stub;
    stub_conn *c = conn_of(t->fd);
    size_t used, begin = b->len;
    (void)f;
    EXPECT(c->len + n <= sizeof c->in);
    memcpy(c->in + c->len, bytes, n);
    c->len += n;
    while ((used = read_command(b, c->in, c->len)) > 0) {
        memmove(c->in, c->in + used, c->len - used);
        c->len -= used;
        answer(c, b->log + begin);
        begin = b->len;
    }
    return (ssize_t)n;
}

static void part(rl_transport *t)
{
    stub_conn *c = conn_of(t->fd);
    close(c->peer);
    c->of = NULL;
    c->peer = -1;
    if (t->context)
        redisFree(t->context);
    else
        close(t->fd);
}

static const rl_transport_ops ops = {take, rl_plain_read, part};

/* --- connections ---------------------------------------------------------- */

/* Of connections that did not come about. */
static void close_strays(stub *b)
{
    for (int i = 0; i < STUB_CONNS; i++)
        if (!b->conn[i].of && b->conn[i].peer != -1) {
            close(b->conn[i].peer);
            b->conn[i].peer = -1;
        }
}

/* Its own end comes to be known with the connection. */
static int open_pair(stub *b)
{
    int fds[2];
    close_strays(b);
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    for (int i = 0; i < STUB_CONNS; i++)
        if (!b->conn[i].of && b->conn[i].peer == -1) {
            b->conn[i].peer = fds[1];
            b->conn[i].len = 0;
            b->conn[i].hung_up = false;
            b->conns++;
            return fds[0];
        }
    FAIL("more than %d connections", STUB_CONNS);
    return -1;
}

static void adopt(stub *b, rl_conn *c)
{
    c->io.ops = &ops;
    for (int i = 0; i < STUB_CONNS; i++)
        if (!b->conn[i].of && b->conn[i].peer != -1) {
            b->conn[i].of = c;
            return;
        }
}

rl_conn *stub_connect(stub *b)
{
    rl_conn *c = rl_conn_new(rl_plain_transport(open_pair(b)));
    EXPECT(c);
    adopt(b, c);
    return c;
}

static redisContext *connect_to_stub(void *arg)
{
    stub *b = arg;
    if (b->away)
        return NULL;
    shim_spare_me(true);
    redisContext *ctx = redisConnectFd(open_pair(b));
    shim_spare_me(false);
    return ctx;
}

static void met(void *arg, rl_conn *c)
{
    adopt(the_stub, c);
    the_stub->met(arg, c);
}

void stub_lead(stub *b, rl_node *n)
{
    rl_dialer *d = &n->pool->dialer;
    d->connect = connect_to_stub;
    d->connect_arg = b;
    b->met = d->met;
    d->met = met;
}

/* --- the table ------------------------------------------------------------ */

void stub_row_add(stub *b, stub_row row)
{
    EXPECT(b->rows < STUB_ROWS);
    b->row[b->rows++] = row;
}

void stub_say(stub *b, const char *words, const char *answer)
{
    stub_row_add(b, (stub_row){.words = words, .answer = answer});
}

void stub_say_text(stub *b, const char *words, const char *text, int nth)
{
    size_t size = strlen(text) + 40;
    char *answer = malloc(size);
    EXPECT(answer && b->texts < sizeof b->text / sizeof *b->text);
    b->text[b->texts++] = answer;
    snprintf(answer, size, "$%zu\r\n%s\r\n", strlen(text), text);
    stub_row_add(b, (stub_row){.words = words, .answer = answer, .nth = nth});
}

void stub_hang_up(stub *b, const char *words, int nth)
{
    stub_row_add(b, (stub_row){.words = words, .nth = nth});
}

#define LISTENS(verb, len, count)                                              \
    "*3\r\n$" #len "\r\n" verb "\r\n$1\r\nx\r\n:" #count "\r\n"

static const stub_row well[] = {
    {.words = "PING", .answer = "+PONG\r\n"},
    {.words = "PING rlock", .answer = "$5\r\nrlock\r\n"},
    {.words = "EVAL return 1 0", .answer = ":1\r\n"},
    {.words = "EVALSHA probe", .answer = STUB_WELL},
    {.words = "SUBSCRIBE", .answer = LISTENS("subscribe", 9, 1)},
    {.words = "UNSUBSCRIBE", .answer = LISTENS("unsubscribe", 11, 0)},
    {.words = "SSUBSCRIBE", .answer = LISTENS("ssubscribe", 10, 1)},
    {.words = "SUNSUBSCRIBE", .answer = LISTENS("sunsubscribe", 12, 0)},
    {.words = "ASKING", .answer = "+OK\r\n"},
    {.words = "WAIT", .answer = ":2\r\n"},
    {.words = "TIME", .answer = "*2\r\n$10\r\n1700000000\r\n$6\r\n500000\r\n"},
    {.words = "CONFIG GET", .answer = "*0\r\n"},
    {.words = "CLIENT ID", .answer = ":7\r\n"},
    {.words = "INFO", .answer = "$13\r\nrole:master\r\n\r\n"},
};

void stub_open(stub *b, rlock_client *cl)
{
    memset(b, 0, sizeof *b);
    for (int i = 0; i < STUB_CONNS; i++)
        b->conn[i].peer = -1;
    for (size_t i = 0; i < sizeof well / sizeof *well; i++)
        stub_row_add(b, well[i]);
    b->cl = cl;
    the_stub = b;
    stub_lead(b, &cl->engine.node);
}

void stub_close(stub *b)
{
    rlock_client_free(b->cl);
    close_strays(b);
    while (b->texts > 0)
        free(b->text[--b->texts]);
    shim_clear(shim_everywhere());
}

/* --- what was said -------------------------------------------------------- */

int stub_asked(const stub *b, const char *words)
{
    int n = 0;
    for (const char *line = b->log; *line; line = strchr(line, '\n') + 1)
        n += strncmp(line, words, strlen(words)) == 0;
    return n;
}

const char *stub_heard(const stub *b)
{
    return b->log;
}

void stub_forget(stub *b)
{
    b->len = 0;
    b->log[0] = '\0';
}

/* --- a client ------------------------------------------------------------- */

static void note_event(const rlock_event *ev, void *arg)
{
    stub_events *told = arg;
    EXPECT(told->n < 16);
    told->type[told->n] = ev->type;
    snprintf(told->message[told->n++], sizeof told->message[0], "%s",
             ev->message);
}

/* That nobody is there is to be known soon; what follows may take its time. */
static void be_patient(rlock_client *cl, int64_t connect_ms)
{
    rl_engine *e = &cl->engine;
    e->core.set.connect_timeout_ms = connect_ms;
    e->node.pool->dialer.connect_timeout_ms = connect_ms;
}

rlock_client *stub_client(stub_events *told, rlock_options o)
{
    rlock_client *cl;
    int64_t connect_ms = o.connect_timeout_ms ? o.connect_timeout_ms : 1000;
    if (!o.uri)
        o.uri = "unix:///nowhere";
    o.lazy = true;
    o.connect_timeout_ms = STUB_WAY_MS;
    if (told) {
        *told = (stub_events){.n = 0};
        o.on_event = note_event;
        o.event_arg = told;
    }
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
    be_patient(cl, connect_ms);
    return cl;
}
