/*
 * HTTP by libmicrohttpd. It serves one request after another on a thread of its
 * own, which is the only one that looks at the servers; this one waits for a
 * signal.
 *
 * The library is loaded when it is needed: it brings ten others, for which each
 * `rlock run` would pay with three milliseconds and a megabyte.
 */
#include "exporter.h"

#ifndef RLOCK_MICROHTTPD

int exporter_serve(exporter *x)
{
    (void)x;
    cli_say("exporter: built without libmicrohttpd: use --textfile");
    return CLI_FAILED;
}

#else

#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANGS_S 10 /* a connection that says nothing is closed */

/* What it has; the macro so that each has the type of its prototype. */
#define FUNCTIONS(X)                                                           \
    X(start_daemon)                                                            \
    X(stop_daemon)                                                             \
    X(create_response_from_buffer)                                             \
    X(add_response_header)                                                     \
    X(queue_response)                                                          \
    X(destroy_response)

static struct {
#define DECLARE(name) __typeof__(MHD_##name) *name;
    FUNCTIONS(DECLARE)
} mhd;

/* A function's address is one of an object, too, as POSIX has it for dlsym(). */
static bool load_function(void *library, const char *name, void *to)
{
    void *found = dlsym(library, name);
    memcpy(to, &found, sizeof found);
    return found;
}

static bool load(void)
{
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libmicrohttpd.so", RTLD_NOW | RTLD_LOCAL);
    bool ok = library;
#define LOAD(name)    ok = ok && load_function(library, "MHD_" #name, &mhd.name);
    FUNCTIONS(LOAD)
    if (!ok)
        cli_say("exporter: libmicrohttpd is not there: install it, or use "
                "--textfile");
    return ok;
}

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status,
                              const char *type, char *text, size_t len)
{
    struct MHD_Response *r =
        mhd.create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
    if (!r) {
        free(text);
        return MHD_NO;
    }
    mhd.add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        mhd.add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result queued = mhd.queue_response(c, status, r);
    mhd.destroy_response(r);
    return queued;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *c,
                              const char *url, const char *method,
                              const char *version, const char *data,
                              size_t *data_len, void **state)
{
    size_t len = 0;
    (void)version;
    (void)data;
    (void)data_len;
    (void)state;
    bool asks = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (asks && strcmp(url, "/metrics") == 0) {
        char *text = exporter_text(arg, &len);
        return text ? answer(c, MHD_HTTP_OK, "text/plain; version=0.0.4", text,
                             len)
                    : MHD_NO;
    }
    char *text = strdup("rlock exporter: /metrics\n");
    unsigned status = !asks                   ? MHD_HTTP_METHOD_NOT_ALLOWED
                      : strcmp(url, "/") == 0 ? MHD_HTTP_OK
                                              : MHD_HTTP_NOT_FOUND;
    return text ? answer(c, status, "text/plain", text, strlen(text)) : MHD_NO;
}

/* "ADDR:PORT", "[ADDR]:PORT". NULL: it is none, and that has been said. */
static struct addrinfo *find_address(const char *listen)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char host[256], shown[300];
    const char *colon = strrchr(listen, ':');
    size_t len = colon ? (size_t)(colon - listen) : 0;
    bool bracketed = len > 2 && listen[0] == '[' && listen[len - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(bracketed ? len - 2 : len),
             bracketed ? listen + 1 : listen);
    bool port =
        colon && colon[1] && strlen(colon + 1) <= 5 && atol(colon + 1) <= 65535;
    if (port && len > 0 && len < sizeof host &&
        getaddrinfo(host, colon + 1, &hints, &found) == 0)
        return found;
    cli_misused(&cli_exporter, "--listen is ADDR:PORT, and not '%s'",
                cli_printable_word(shown, sizeof shown, listen));
    return NULL;
}

/* Until it is to end: by then no signal has ended the process, as they wait. */
static void await_signal(const sigset_t *set)
{
    int sig;
    while (sigwait(set, &sig) != 0)
        ;
}

int exporter_serve(exporter *x)
{
    sigset_t set;
    struct addrinfo *at = find_address(x->listen);
    if (!at)
        return CLI_FAILED;
    if (!load()) {
        freeaddrinfo(at);
        return CLI_FAILED;
    }
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD |
                     (at->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    struct MHD_Daemon *d = mhd.start_daemon(
        flags, 0, NULL, NULL, handle, x, MHD_OPTION_SOCK_ADDR, at->ai_addr,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HANGS_S, MHD_OPTION_END);
    freeaddrinfo(at);
    if (!d) {
        cli_say("cannot listen at %s: %s", x->listen, strerror(errno));
        return CLI_FAILED;
    }
    await_signal(&set);
    mhd.stop_daemon(d);
    return 0;
}

#endif
