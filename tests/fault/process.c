/*
 * Section E of the catalogue, as far as it is about whole processes: clones
 * that cannot be told apart by host, pid and thread id, small stacks, and the
 * end by SIGTERM.
 * More of it is in client.c, and in server/fork.c and server/process.c, where
 * the library is a guest in somebody else's process.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene.h"

/* --- processes with one pid ---------------------------------------------- */

/*
 * Containers are pid namespaces: in each of them somebody is number 1, and with
 * one host name they look alike. A child that is number 1 is made of a child
 * that makes the namespace.
 */
typedef struct container {
    void (*fn)(child *c);
} container;

static void expect_good_end(pid_t pid)
{
    int status;
    EXPECT_INT(waitpid(pid, &status, 0), pid);
    EXPECT(WIFEXITED(status));
    EXPECT_INT(WEXITSTATUS(status), 0);
}

static void run_as_number_1(child *c, void *arg)
{
    const container *box = arg;
    if (unshare(CLONE_NEWPID) != 0) {
        child_tell(c, 's');
        return;
    }
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        EXPECT_INT(getpid(), 1);
        child_tell(c, '1');
        box->fn(c);
        _exit(0);
    }
    expect_good_end(pid);
}

/* Before the test's server; skips the test where there are no namespaces. */
static child *start_as_number_1(void (*fn)(child *c))
{
    container box = {fn};
    child *c = child_start(run_as_number_1, &box);
    if (child_hear(c) == 's')
        SKIP("no right to make a pid namespace here");
    return c;
}

static rlock_client *client_on_one_host(child *c)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = child_take_uri(c);
    opts.host_id = "same";
    return server_client(NULL, &opts);
}

/* The holder id that the server has. */
static void read_holder(server *sv, char *out, size_t size)
{
    redisReply *r = server_cmd(sv, "HKEYS %s", SCENE_LOCK);
    EXPECT_INT(r->elements, 1);
    snprintf(out, size, "%s", r->element[0]->str);
}

static void hold_as_number_1(child *c)
{
    rlock_client *cl = client_on_one_host(c);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    child_expect(c, 't');
    rlock_status s = rlock_trylock(lk);
    child_tell(c, s == RLOCK_OK ? 'l' : s == RLOCK_BUSY ? 'b' : '?');
    child_expect(c, 'u');
    EXPECT_STATUS(rlock_unlock(lk), s == RLOCK_OK ? RLOCK_OK : RLOCK_NOT_HELD);
    child_tell(c, 'f');
    rlock_free(lk);
    rlock_client_free(cl);
}

/* One after the other they get it: the control. */
TEST(process, fault_088_the_first_processes_of_two_containers_are_two_owners)
{
    char first[300], second[300];
    child *a = start_as_number_1(hold_as_number_1);
    child *b = start_as_number_1(hold_as_number_1);
    child *d = start_as_number_1(hold_as_number_1);
    server *sv = server_start(NULL);
    child_give_uri(a, sv);
    child_give_uri(b, sv);
    child_give_uri(d, sv);
    child_tell(a, 't');
    child_expect(a, 'l');
    read_holder(sv, first, sizeof first);
    child_tell(b, 't');
    child_expect(b, 'b');
    child_tell(b, 'u');
    child_expect(b, 'f');
    EXPECT_INT(levels(sv, SCENE_LOCK), 1); /* that unlock freed nothing */
    child_tell(a, 'u');
    child_expect(a, 'f');
    child_tell(d, 't');
    child_expect(d, 'l');
    read_holder(sv, second, sizeof second);
    EXPECT_INT(strncmp(first, "same:1:1:", 9), 0);
    EXPECT_INT(strncmp(second, "same:1:1:", 9), 0);
    EXPECT(strcmp(first, second) != 0);
    child_tell(d, 'u');
    child_expect(d, 'f');
    child_end(a);
    child_end(b);
    child_end(d);
    server_stop(sv);
}

/* --- 84: a child with its parent's pid ----------------------------------- */

static void expect_inherits_nothing(rlock_client *cl, rlock *lk)
{
    EXPECT(!rlock_is_held(lk));
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_client_ping(cl), RLOCK_EFORKED);
    rlock_free(lk);
    rlock_client_free(cl);
}

static void fork_number_1(child *c)
{
    rlock_client *cl = client_on_one_host(c);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_INT(unshare(CLONE_NEWPID), 0);
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        EXPECT_INT(getpid(), 1);
        expect_inherits_nothing(cl, lk);
        _exit(0);
    }
    expect_good_end(pid);
    EXPECT(rlock_is_held(lk)); /* the control */
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
}

TEST(process, fault_084_a_child_with_its_parents_pid_inherits_nothing)
{
    child *c = start_as_number_1(fork_number_1);
    server *sv = server_start(NULL);
    child_give_uri(c, sv);
    child_end(c);
    expect_nothing_left(sv);
    server_stop(sv);
}

/* --- 87: a thread with a dead one's id ----------------------------------- */

static intptr_t lock_for_a_minute(void *lk)
{
    EXPECT_STATUS(rlock_acquire(lk, 0, 60000), RLOCK_OK);
    EXPECT(rlock_is_held(lk)); /* the control */
    return gettid();
}

static intptr_t expect_not_inherited(void *lk)
{
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_token(lk), 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    return gettid();
}

/* The next thread or process of this namespace. False: the kernel does not let
   one choose. */
static bool next_gets_id(intptr_t id)
{
    FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "we");
    if (!f)
        return false;
    fprintf(f, "%d", (int)id - 1);
    return fclose(f) == 0;
}

static void use_an_id_twice(child *c)
{
    rlock_client *cl = client_on_one_host(c);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    intptr_t first = test_join(test_spawn(lock_for_a_minute, lk));
    bool chosen = next_gets_id(first);
    intptr_t second = test_join(test_spawn(expect_not_inherited, lk));
    child_tell(c, chosen && first == second ? 'y' : 'n');
    rlock_free(lk);
    rlock_client_free(cl);
}

TEST(process, fault_087_a_thread_with_a_dead_ones_kernel_id_does_not_inherit)
{
    child *c = start_as_number_1(use_an_id_twice);
    server *sv = server_start(NULL);
    child_give_uri(c, sv);
    char same = child_hear(c);
    child_end(c);
    server_stop(sv);
    if (same != 'y')
        SKIP("no thread gets the id of another here");
}

/* --- 89: a process that is cloned with its machine ----------------------- */

/* Pages that the kernel clears in a child stay as they are: so they do in the
   clone of a machine. */
static void keep_all_pages(void)
{
    char line[512];
    unsigned long begin = 0, end = 0, b, e;
    FILE *f = fopen("/proc/self/smaps", "re");
    EXPECT(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &b, &e) == 2) {
            begin = b;
            end = e;
        }
        if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " wf"))
            EXPECT_INT(madvise((void *)begin, end - begin, MADV_KEEPONFORK), 0);
    }
    fclose(f);
}

/*
 * Past the C library, so that nobody is told of it, and with the same pid: as
 * when a machine is cloned, or a snapshot of it is started twice.
 */
static pid_t clone_unnoticed(void)
{
    keep_all_pages();
    return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL,
                          NULL);
}

/* A machine's clone does not share what wakes its loop. With one signal for two
   loops, the one that reads it takes the other one's wake-up. */
static void take_own_signals(void)
{
    char path[32], is[32];
    for (int fd = 0; fd < FD_SETSIZE; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, is, sizeof is - 1);
        is[n < 0 ? 0 : n] = '\0';
        if (strcmp(is, "anon_inode:[eventfd]") != 0)
            continue;
        int own = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        EXPECT_INT(dup3(own, fd, O_CLOEXEC), fd);
        close(own);
    }
}

static void be_the_clone(child *c, void *arg)
{
    rlock *lk = arg;
    EXPECT_INT(getpid(), 1);
    take_own_signals();
    child_expect(c, 't');
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    child_tell(c, 'b');
    child_expect(c, 't');
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    child_tell(c, 'l');
    child_expect(c, 'u');
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
}

static void read_own(rlock *lk, rlock_holder *out)
{
    EXPECT_STATUS(rlock_holder_info(lk, out, sizeof *out), RLOCK_OK);
    EXPECT_STR(out->host, "same");
    EXPECT_INT(out->pid, 1);
    EXPECT_INT(out->tid, 1);
}

static void clone_number_1(child *c)
{
    rlock_holder mine, its;
    rlock_client *cl = client_on_one_host(c);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    child_tell(c, 'r');
    child_expect(c, 'g'); /* the connections are broken, as by a clone */
    child *clone = child_start_by(clone_unnoticed, be_the_clone, lk);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    read_own(lk, &mine);
    child_tell(clone, 't');
    child_expect(clone, 'b');
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK); /* the control: its own */
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    child_tell(clone, 't');
    child_expect(clone, 'l');
    read_own(lk, &its);
    EXPECT(strcmp(mine.hold_id, its.hold_id) != 0);
    child_tell(clone, 'u');
    child_end(clone);
    rlock_free(lk);
    rlock_client_free(cl);
}

TEST(process, fault_089_a_cloned_process_is_another_owner)
{
#ifdef __SANITIZE_THREAD__
    SKIP("to its sanitizer a clone still has the threads it was cloned from");
#endif
    child *c = start_as_number_1(clone_number_1);
    server *sv = server_start(NULL);
    child_give_uri(c, sv);
    child_expect(c, 'r');
    server_cmd(sv, "CLIENT KILL TYPE normal");
    child_tell(c, 'g');
    child_end(c);
    expect_nothing_left(sv);
    server_stop(sv);
}

/* --- 98: small stacks ---------------------------------------------------- */

typedef struct stage {
    server *sv;
    rlock_options opts;
    bool over_nodes; /* Multi and Red locks too, which need more */
} stage;

/* A success, a wait, an error each, with a lock of any kind. */
static void use_lock(server *sv, rlock *lk)
{
    rlock_holder h;
    take_by_hand(sv, SCENE_LOCK, 30);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(lk, 60000), RLOCK_OK);
    rlock_status s = rlock_holder_info(lk, &h, sizeof h);
    EXPECT(s == RLOCK_OK || s == RLOCK_ENOTSUP);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_force_unlock(lk), RLOCK_NOT_HELD);
}

static void use_locks_over_nodes(server *sv, rlock_client *cl, rlock *lk)
{
    rlock *multi, *red;
    EXPECT_STATUS(rlock_multi_new(&lk, 1, &multi), RLOCK_OK);
    EXPECT_STATUS(rlock_red_new(&cl, 1, SCENE_LOCK, &red), RLOCK_OK);
    use_lock(sv, multi);
    use_lock(sv, red);
    rlock_free(red);
    rlock_free(multi);
}

/* A client from its begin to its end. */
static void *do_everything(void *arg)
{
    stage *st = arg;
    rlock_client *cl = server_client(st->sv, &st->opts);
    rlock *lk = test_lock(cl, SCENE_LOCK), *busy = test_lock(cl, "busy");
    use_lock(st->sv, lk);
    EXPECT_STATUS(rlock_acquire(busy, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    if (st->over_nodes)
        use_locks_over_nodes(st->sv, cl, lk);
    rlock_free(lk);
    rlock_free(busy);
    rlock_client_free(cl);
    return NULL;
}

static void on_a_stack_of(size_t size, stage *st)
{
    pthread_attr_t attr;
    pthread_t thread;
    EXPECT_INT(pthread_attr_init(&attr), 0);
    EXPECT_INT(pthread_attr_setstacksize(&attr, size), 0);
    EXPECT_INT(pthread_create(&thread, &attr, do_everything, st), 0);
    EXPECT_INT(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
}

TEST(process, fault_098_calls_can_do_with_a_small_stack)
{
    stage st = {.sv = server_start(NULL), .opts = RLOCK_OPTIONS_INIT};
    take_by_hand(st.sv, "busy", 60000);
    on_a_stack_of(64 << 10, &st);
    st.over_nodes = true;
    on_a_stack_of(8 << 20, &st); /* the control */
    on_a_stack_of(128 << 10, &st);
    EXPECT_INT(server_int(st.sv, "DEL busy"), 1);
    expect_nothing_left(st.sv);
    server_stop(st.sv);
}

/* --- 97: the end by SIGTERM ---------------------------------------------- */

static intptr_t wait_for_ever(void *lk)
{
    return rlock_lock(lk);
}

/* A program as it should be: it unlocks, and frees its client. */
static void work_until_sigterm(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    sigset_t end;
    int sig;
    (void)arg;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    EXPECT_INT(pthread_sigmask(SIG_BLOCK, &end, NULL), 0);
    opts.uri = child_take_uri(c);
    opts.command_timeout_ms = opts.connect_timeout_ms = 300;
    rlock_client *cl = server_client(NULL, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK), *busy = test_lock(cl, "busy");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    test_thread *t = test_spawn(wait_for_ever, busy);
    EVENTUALLY(5000, stats_of(cl).waiting_now == 1);
    child_tell(c, 'l');
    EXPECT_INT(sigwait(&end, &sig), 0);
    rlock_status s = rlock_unlock(lk);
    rlock_client_free(cl);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_ECLOSED);
    rlock_free(lk);
    rlock_free(busy);
    child_tell(c, s == RLOCK_OK ? 'u' : s == RLOCK_EIO ? 'e' : '?');
}

/* How long it takes; *unlocked: how its unlock ended. */
static int64_t terminate(child *c, void (*fault)(server *sv), char *unlocked)
{
    server *sv = server_start(NULL);
    take_by_hand(sv, "busy", 60000);
    child_give_uri(c, sv);
    child_expect(c, 'l');
    if (fault)
        fault(sv);
    int64_t began_ms = test_now_ms();
    EXPECT_INT(kill(child_pid(c), SIGTERM), 0);
    *unlocked = child_hear(c);
    child_end(c);
    int64_t took_ms = test_now_ms() - began_ms;
    if (!fault) {
        EXPECT_INT(levels(sv, SCENE_LOCK), 0);
        EXPECT_INT(queued(sv, "busy"), 0);
    }
    server_stop(sv);
    return took_ms;
}

/*
 * The unlock, the call that runs, and the last attempt to undo have 0.3 s each;
 * the rest is for a slow machine.
 */
#define END_LIMIT_MS (3 * 300 + 1500)

static void expect_ends_in_time(void (*fault)(server *sv), int64_t least_ms)
{
    child *spared = child_start(work_until_sigterm, NULL);
    child *c = child_start(work_until_sigterm, NULL);
    char unlocked;
    EXPECT_BETWEEN(terminate(spared, NULL, &unlocked), 0, END_LIMIT_MS);
    EXPECT_INT(unlocked, 'u'); /* the control */
    EXPECT_BETWEEN(terminate(c, fault, &unlocked), least_ms, END_LIMIT_MS);
    EXPECT_INT(unlocked, 'e');
}

TEST(process, fault_097_a_terminated_program_ends_in_time_if_the_server_hangs)
{
    expect_ends_in_time(server_pause, 290);
}

TEST(process, fault_097_a_terminated_program_ends_in_time_if_the_server_died)
{
    expect_ends_in_time(server_kill, 0);
}
