/*
 * pool [URI]: the jobs of a thread pool hold a lock, not its threads.
 *
 * A job locks in one worker, goes back into the queue, and unlocks in another:
 * a worker acts as its job's owner. What has to wait for long goes back, too.
 */
#include "example.h"
#include <pthread.h>

enum { JOBS = 12, WORKERS = 4 };
typedef struct job {
    rlock_owner *owner;
    long locked_by, seen; /* worker, from 1 on, or 0; the counter, then */
} job;

static int queue[2]; /* a pipe of pointers to jobs; NULL: the pool ends */
static rlock *lock;  /* one handle serves all owners */
static int counter;  /* only the lock in Redis guards it */
static _Atomic int unfinished = JOBS;

static void put(job *j)
{
    if (write(queue[1], &j, sizeof(j)) != sizeof(j))
        fail("queue", "cannot write");
}

/* The thread acts as the job's owner. True: it is to go on. */
static bool run(job *j, long me)
{
    if (j->locked_by && j->locked_by != me) {
        counter = j->seen + 1;
        printf("job %d: worker %ld, then %ld\n", counter, j->locked_by, me);
        MUST(rlock_unlock(lock));
        rlock_owner_free(j->owner);
        return false;
    }
    if (j->locked_by) /* another worker shall have it, to show it */
        return true;
    rlock_status s = rlock_acquire(lock, 5, RLOCK_WATCHDOG);
    if (s == RLOCK_TIMEOUT)
        return true;
    MUST(s);
    *j = (job){j->owner, me, counter};
    return true;
}

static void *work(void *me)
{
    job *j;
    while (read(queue[0], &j, sizeof(j)) == sizeof(j) && j) {
        rlock_owner_set(j->owner);
        bool more = run(j, (long)me);
        rlock_owner_set(NULL); /* before another worker acts as it */
        if (more || --unfinished == 0)
            put(more ? j : NULL);
    }
    put(NULL); /* for the next worker */
    return NULL;
}

int main(int argc, char **argv)
{
    rlock_client *client = new_client(argc > 1 ? argv[1] : NULL);
    pthread_t thread[WORKERS];
    job jobs[JOBS] = {{0}};
    MUST(rlock_new(client, "example:pool", &lock));
    if (pipe(queue) != 0)
        fail("queue", "no pipe");
    for (job *j = jobs; j < jobs + JOBS; put(j++))
        MUST(rlock_owner_new("job", &j->owner));
    for (long i = 0; i < WORKERS; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)(i + 1)) != 0)
            fail("workers", "pthread_create failed");
    for (int i = 0; i < WORKERS; i++)
        pthread_join(thread[i], NULL);
    rlock_free(lock);
    rlock_client_free(client);
    return counter == JOBS ? 0 : 1;
}
