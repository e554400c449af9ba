/*
 * A redisAsyncContext on epoll: hiredis brings adapters for several libraries,
 * and none for epoll by hand. This is all of one. It always reads, and watches
 * for room to write only while hiredis has something to write.
 */
#ifndef DATA_EPOLL_H
#define DATA_EPOLL_H

#include "data.h"
#include <errno.h>
#include <sys/epoll.h>

static inline void epoll_watch(int loop, int operation, int fd, uint32_t events,
                               void *whose)
{
    struct epoll_event e = {.events = events, .data.ptr = whose};
    if (epoll_ctl(loop, operation, fd, &e) != 0)
        fail("epoll_ctl", strerror(errno));
}

static inline void data_add_write(void *context)
{
    redisAsyncContext *c = context;
    epoll_watch((int)(intptr_t)c->data, EPOLL_CTL_MOD, c->c.fd,
                EPOLLIN | EPOLLOUT, c);
}

static inline void data_del_write(void *context)
{
    redisAsyncContext *c = context;
    epoll_watch((int)(intptr_t)c->data, EPOLL_CTL_MOD, c->c.fd, EPOLLIN, c);
}

static inline redisAsyncContext *data_attach(const char *uri, int loop)
{
    redisAsyncContext *c = data_connect_async(uri);
    c->data = (void *)(intptr_t)loop;
    c->ev.data = c;
    c->ev.addWrite = data_add_write;
    c->ev.delWrite = data_del_write;
    epoll_watch(loop, EPOLL_CTL_ADD, c->c.fd, EPOLLIN | EPOLLOUT, c);
    return c;
}

/* False: it is of a descriptor that is watched for NULL. */
static inline bool data_on_event(const struct epoll_event *e)
{
    if (e->data.ptr && e->events & EPOLLOUT)
        redisAsyncHandleWrite(e->data.ptr);
    else if (e->data.ptr)
        redisAsyncHandleRead(e->data.ptr);
    return e->data.ptr != NULL;
}

#endif
