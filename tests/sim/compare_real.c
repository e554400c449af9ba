/* The real server: started, asked, stopped. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare.h"
#include "resp.h"

#define PATIENCE_MS 10000

static void path_in(const real *r, const char *name, char out[96])
{
    snprintf(out, 96, "%s/%s", r->dir, name);
}

static void map_clock(real *r)
{
    char path[96];
    path_in(r, "clock", path);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        die("%s: %s", path, strerror(errno));
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        die("%s cannot be mapped", path);
    r->clock_us = page;
}

static void run_server(const real *r)
{
    char clock[128], socket[96];
    path_in(r, "clock", socket);
    snprintf(clock, sizeof clock, "RLOCK_SIM_CLOCK=%s", socket);
    path_in(r, "socket", socket);
    putenv(clock);
    putenv("LD_PRELOAD=" RLOCK_SIM_PRELOAD);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket",
           socket, "--save", "", "--appendonly", "no", "--loglevel", "warning",
           "--logfile", "/dev/null", "--dir", r->dir, "--daemonize", "no",
           /* HSCAN tells all at once, wherever it is to begin. */
           "--hash-max-ziplist-value", "100000", "--hash-max-ziplist-entries",
           "100000", (char *)NULL);
    _exit(127);
}

static int connect_to(const real *r)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", r->dir);
    for (int i = 0; i < 1000; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
            return fd;
        close(fd);
        poll(NULL, 0, 10);
    }
    die("redis-server does not start; is it installed?");
}

static void send_words(int fd, const word *argv, size_t n)
{
    static text line;
    line.len = 0;
    text_print(&line, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++)
        text_bulk(&line, argv[i].at, argv[i].len);
    for (size_t sent = 0; sent < line.len;) {
        ssize_t k = write(fd, line.at + sent, line.len - sent);
        if (k <= 0)
            die("the server takes nothing");
        sent += (size_t)k;
    }
}

/* What comes is added. False: nothing more does. */
static bool receive(int fd, int patience_ms, text *to)
{
    char bytes[4096];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, patience_ms) <= 0)
        return false;
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n <= 0)
        die("the server has gone");
    text_add(to, bytes, (size_t)n);
    return true;
}

void real_ask(real *r, const word *argv, size_t n, text *reply)
{
    send_words(r->fd, argv, n);
    reply->len = 0;
    do {
        if (!receive(r->fd, PATIENCE_MS, reply))
            die("no answer");
    } while (resp_reply_len(reply->at, reply->len) <= 0);
    while (receive(r->listener, 0, &r->heard))
        ;
}

static void subscribe(real *r)
{
    text said = {0};
    for (int i = 0; i < BELLS; i += 2) {
        char bell[32];
        word argv[] = {{"SUBSCRIBE", 9}, {bell, 0}};
        argv[1].len = (size_t)snprintf(bell, sizeof bell, BELL_FORMAT, i);
        send_words(r->listener, argv, 2);
        said.len = 0;
        do {
            if (!receive(r->listener, PATIENCE_MS, &said))
                die("no subscription");
        } while (resp_reply_len(said.at, said.len) <= 0);
    }
    text_free(&said);
}

void real_start(real *r)
{
    const char *tmp = getenv("TMPDIR");
    *r = (real){0};
    snprintf(r->dir, sizeof r->dir, "%s/rlock-sim.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(r->dir))
        die("%s: %s", r->dir, strerror(errno));
    map_clock(r);
    *r->clock_us = 1600000000000000;
    r->pid = fork();
    if (r->pid == 0)
        run_server(r);
    r->fd = connect_to(r);
    r->listener = connect_to(r);
    subscribe(r);
}

void real_stop(real *r)
{
    static const char *const files[] = {"clock", "socket"};
    char path[96];
    kill(r->pid, SIGKILL);
    waitpid(r->pid, NULL, 0);
    close(r->fd);
    close(r->listener);
    text_free(&r->heard);
    for (size_t i = 0; i < 2; i++) {
        path_in(r, files[i], path);
        unlink(path);
    }
    rmdir(r->dir);
}
