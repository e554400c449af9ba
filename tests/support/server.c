/* A redis-server as a child process: its directory, arguments and address. */
#include "server_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { PORT_TRIES = 20 };

static void make_dir(server *sv)
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || !*tmp || strlen(tmp) > DIR_MAX - 16)
        tmp = "/tmp";
    snprintf(sv->dir, sizeof sv->dir, "%s/rlock-XXXXXX", tmp);
    if (!mkdtemp(sv->dir))
        FAIL("cannot make %s: %s", sv->dir, strerror(errno));
    snprintf(sv->socket, sizeof sv->socket, "%s/s", sv->dir);
    snprintf(sv->log, sizeof sv->log, "%s/log", sv->dir);
    snprintf(sv->uri, sizeof sv->uri, "unix://%s", sv->socket);
}

static void remove_dir(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return;
    int fd = dirfd(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) == 0)
            continue;
        /* A directory, such as that of the append-only files. */
        char sub[DIR_MAX + 300];
        snprintf(sub, sizeof sub, "%s/%s", path, entry->d_name);
        remove_dir(sub);
    }
    closedir(dir);
    rmdir(path);
}

/*
 * A port below those that the kernel gives to outgoing connections, which
 * could take it while the server is down.
 */
static int choose_port(void)
{
    return process_some_port(10000, 20000);
}

int process_some_port(int first, int count)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned x = (unsigned)now.tv_nsec * 2654435761U ^ (unsigned)getpid();
    return first + (int)(x / 7 % (unsigned)count);
}

static bool listens_nobody(int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bool bound = bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
    close(fd);
    return bound;
}

/* By a name that the kernel gives once, and takes back when the process ends. */
bool process_take_port(int port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1,
                     "rlock-test-port-%d", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(fd >= 0);
    socklen_t size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)n;
    if (bind(fd, (struct sockaddr *)&name, size) == 0 && listens_nobody(port))
        return true;
    close(fd);
    return false;
}

int server_free_port(void)
{
    int port;
    do {
        port = choose_port();
    } while (!process_take_port(port));
    return port;
}

void process_set_port(server *sv, int port)
{
    sv->port = port;
    snprintf(sv->port_arg, sizeof sv->port_arg, "%d", port);
}

static void start_on_some_port(server *sv)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        process_set_port(sv, server_free_port());
        process_launch(sv);
        if (process_wait_ready(sv))
            return;
        process_end(sv);
    }
    process_fail(sv, "finds no port");
}

/* The same port may be busy for a moment after the last process ended. */
static void start_again(server *sv)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        process_launch(sv);
        if (process_wait_ready(sv))
            return;
        process_end(sv);
        if (!sv->port)
            break;
        test_pause_ms(50);
    }
    process_fail(sv, "ended at once");
}

/* Words of the test's own, which come last and so win. */
static int split_args(server *sv, const char *args, int n)
{
    static char empty[] = "";
    sv->args = strdup(args ? args : "");
    EXPECT(sv->args);
    char *rest = NULL;
    char *word = strtok_r(sv->args, " ", &rest);
    for (; word; word = strtok_r(NULL, " ", &rest)) {
        EXPECT(n < ARGS_MAX);
        sv->argv[n++] = strcmp(word, "\"\"") == 0 ? empty : word;
    }
    return n;
}

/* The shared page from which the server takes its clock, see preload/. */
static void make_clock(server *sv)
{
    const char *path = strchr(sv->clock, '=') + 1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT(fd >= 0);
    EXPECT_INT(ftruncate(fd, 2 * sizeof *sv->told), 0);
    sv->told = mmap(NULL, 2 * sizeof *sv->told, PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);
    EXPECT(sv->told != MAP_FAILED);
    close(fd);
}

/* env(1), which then becomes the server. */
static int prefix_clock(server *sv)
{
    static char env[] = "env", preload[] = "LD_PRELOAD=" RLOCK_PRELOAD_CLOCK;
    snprintf(sv->clock, sizeof sv->clock, "RLOCK_TEST_CLOCK=%s/clock", sv->dir);
    make_clock(sv);
    sv->argv[0] = env;
    sv->argv[1] = preload;
    sv->argv[2] = sv->clock;
    return 3;
}

static const char *program(void)
{
    const char *named = getenv("RLOCK_TEST_SERVER");
    return named ? named : "redis-server";
}

/* Of Redis, Valkey and Redict alike: "... v=7.0.15 ..." */
static int major_version(void)
{
    char command[300], line[300] = "";
    snprintf(command, sizeof command, "'%s' --version", program());
    FILE *out = popen(command, "re");
    if (!out || !fgets(line, sizeof line, out))
        FAIL("cannot run %s", command);
    pclose(out);
    const char *v = strstr(line, "v=");
    return v ? atoi(v + 2) : 0;
}

const char *server_unlocked(const char *args)
{
    static _Thread_local char all[300];
    const char *unlocking = "--enable-debug-command yes "
                            "--enable-protected-configs yes";
    snprintf(all, sizeof all, "%s %s", args,
             major_version() < 7 ? "" : unlocking);
    return all;
}

static void make_argv(server *sv, const char *args, bool clocked)
{
    strcpy(sv->port_arg, "0");
    const char *const fixed[] = {
        "--port",    sv->port_arg,  "--bind", "127.0.0.1",    "--unixsocket",
        sv->socket,  "--save",      "",       "--appendonly", "no",
        "--logfile", sv->log,       "--dir",  sv->dir,        "--daemonize",
        "no",        "--databases", "16"};
    int n = clocked ? prefix_clock(sv) : 0;
    sv->argv[n++] = (char *)program();
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        sv->argv[n++] = (char *)fixed[i];
    n = split_args(sv, args, n);
    sv->argv[n] = NULL;
}

static server *new_server(const char *args, bool clocked)
{
    server *sv = calloc(1, sizeof *sv);
    EXPECT(sv);
    pthread_mutex_init(&sv->mutex, NULL);
    pthread_cond_init(&sv->changed, NULL);
    make_dir(sv);
    make_argv(sv, args, clocked);
    sv->ask = asker_new(sv->socket);
    return sv;
}

server *process_new(const char *args)
{
    return new_server(args, false);
}

server *server_start(const char *args)
{
    server *sv = new_server(args, false);
    start_again(sv);
    return sv;
}

server *server_start_clocked(const char *args)
{
    server *sv = new_server(args, true);
    start_again(sv);
    return sv;
}

void server_set_clock(server *sv, long long ahead_s)
{
    atomic_store(&sv->told[0], ahead_s);
}

void server_stop_clock(server *sv, long long at_us)
{
    atomic_store(&sv->told[1], at_us);
}

server *server_start_tcp(const char *args)
{
    server *sv = new_server(args, false);
    start_on_some_port(sv);
    return sv;
}

static void free_server(server *sv)
{
    asker_free(sv->ask);
    pthread_cond_destroy(&sv->changed);
    pthread_mutex_destroy(&sv->mutex);
    if (sv->told)
        munmap(sv->told, 2 * sizeof *sv->told);
    free(sv->args);
    free(sv);
}

/*
 * SIGKILL, for nothing of it is kept: to SIGTERM a server answers only with
 * its next tick, and there are hundreds of tests.
 */
void server_stop(server *sv)
{
    if (!sv)
        return;
    process_end(sv);
    remove_dir(sv->dir);
    free_server(sv);
}

void server_kill(server *sv)
{
    process_end(sv);
}

void server_forget(server *sv)
{
    char path[sizeof sv->dir + sizeof "/appendonlydir"];
    snprintf(path, sizeof path, "%s/appendonlydir", sv->dir);
    remove_dir(path);
    snprintf(path, sizeof path, "%s/appendonly.aof", sv->dir); /* before 7 */
    unlink(path);
    snprintf(path, sizeof path, "%s/dump.rdb", sv->dir);
    unlink(path);
}

/* Files are numbered: appendonly.aof.7.incr.aof. Redis before 7 has one. */
static void find_log(const server *sv, char *path, size_t size)
{
    int last = 0, number;
    snprintf(path, size, "%s/appendonlydir", sv->dir);
    DIR *dir = opendir(path);
    if (!dir) {
        snprintf(path, size, "%s/appendonly.aof", sv->dir);
        return;
    }
    for (const struct dirent *e; (e = readdir(dir));)
        if (sscanf(e->d_name, "appendonly.aof.%d.incr", &number) == 1 &&
            strstr(e->d_name, ".incr.") && number > last)
            last = number;
    closedir(dir);
    snprintf(path, size, "%s/appendonlydir/appendonly.aof.%d.incr.aof", sv->dir,
             last);
}

bool server_cut_log(server *sv, off_t bytes)
{
    char path[sizeof sv->dir + 64];
    struct stat st;
    find_log(sv, path, sizeof path);
    return stat(path, &st) == 0 && st.st_size > bytes &&
           truncate(path, st.st_size - bytes) == 0;
}

void server_rewrite_log(server *sv)
{
    server_cmd(sv, "BGREWRITEAOF");
    EVENTUALLY(SOON, !server_info(sv, "aof_rewrite_in_progress") &&
                         !server_info(sv, "aof_rewrite_scheduled"));
}

void server_restart(server *sv)
{
    process_signal(sv, SIGTERM);
    process_signal(sv, SIGCONT);
    process_wait_end(sv, END_LIMIT_MS);
    process_end(sv);
    start_again(sv);
}

const char *server_uri(const server *sv)
{
    return sv->uri;
}

const char *server_path(const server *sv)
{
    return sv->socket;
}

void need_host_names(void)
{
    /* A test program may have a getaddrinfo of its own. */
    if (!gethostbyname("localhost"))
        SKIP("the name localhost is not known here");
}

int server_port(const server *sv)
{
    return sv->port;
}

asker *server_asker(server *sv)
{
    return sv->ask;
}

const char *server_file(const server *sv, const char *name)
{
    static char path[300];
    int dir = (int)(strrchr(server_path(sv), '/') - server_path(sv));
    snprintf(path, sizeof path, "%.*s/%s", dir, server_path(sv), name);
    return path;
}

rlock_client *server_client(server *sv, const rlock_options *opts)
{
    rlock_options own = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    if (opts)
        own = *opts;
    if (!own.uri && !own.connect)
        own.uri = sv->uri;
    if (own.watchdog_lease_ms > 0)
        test_lease(own.watchdog_lease_ms);
    EXPECT_STATUS(rlock_client_new(&own, &cl), RLOCK_OK);
    return cl;
}

rlock *test_lock(rlock_client *cl, const char *name)
{
    rlock *lk = NULL;
    EXPECT_STATUS(rlock_new(cl, name, &lk), RLOCK_OK);
    return lk;
}

rlock *test_fair_lock(rlock_client *cl, const char *name)
{
    rlock *lk;
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    o.fair = true;
    EXPECT_STATUS(rlock_new_ex(cl, name, strlen(name), &o, &lk), RLOCK_OK);
    return lk;
}
