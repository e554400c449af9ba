#include "clerk.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "attack.h"

static void raise(const clerk *c)
{
    uint64_t one = 1;
    if (write(c->fd, &one, sizeof one) != sizeof one)
        attack_die("cannot wake the loop: %s", strerror(errno));
}

static void answer(clerk *c)
{
    rlock *lk = c->lk;
    pthread_mutex_unlock(&c->mutex);
    rlock_holder holder;
    rlock_status s = rlock_holder_info(lk, &holder, sizeof holder);
    pthread_mutex_lock(&c->mutex);
    c->holder = holder;
    c->status = s;
    c->lk = NULL;
    raise(c);
}

static void *run(void *arg)
{
    clerk *c = arg;
    pthread_mutex_lock(&c->mutex);
    while (!c->over || c->lk) {
        if (c->lk)
            answer(c);
        else
            pthread_cond_wait(&c->asked, &c->mutex);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

void clerk_start(clerk *c)
{
    c->over = c->busy = false;
    c->lk = NULL;
    c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->asked, NULL);
    int err = c->fd < 0 ? errno : pthread_create(&c->thread, NULL, run, c);
    if (err)
        attack_die("cannot start a thread: %s", strerror(err));
}

void clerk_stop(clerk *c)
{
    pthread_mutex_lock(&c->mutex);
    c->over = true;
    pthread_cond_signal(&c->asked);
    pthread_mutex_unlock(&c->mutex);
    pthread_join(c->thread, NULL);
    close(c->fd);
}

bool clerk_ask(clerk *c, rlock *lk, void *who)
{
    pthread_mutex_lock(&c->mutex);
    bool free = !c->busy;
    if (free) {
        c->busy = true;
        c->lk = lk;
        c->who = who;
        pthread_cond_signal(&c->asked);
    }
    pthread_mutex_unlock(&c->mutex);
    return free;
}

void *clerk_answer(clerk *c, rlock_status *s, rlock_holder *holder)
{
    uint64_t count;
    if (read(c->fd, &count, sizeof count) != sizeof count)
        attack_die("a clerk without an answer");
    pthread_mutex_lock(&c->mutex);
    *s = c->status;
    *holder = c->holder;
    c->busy = false;
    void *who = c->who;
    pthread_mutex_unlock(&c->mutex);
    return who;
}
