/*
 * metrics [URI [PORT]]: the figures of a program, as Prometheus fetches them.
 *
 * Four threads want one lock. Then the program prints its figures; with a port
 * it goes on, and serves them: curl http://127.0.0.1:PORT/metrics.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>

static void *work(void *client)
{
    rlock *lock;
    MUST(rlock_new(client, "example:metrics", &lock));
    for (int i = 0; i < 5; i++) {
        MUST(rlock_lock(lock));
        sleep_ms(10);
        MUST(rlock_unlock(lock));
    }
    rlock_free(lock);
    return NULL;
}

static bool write_out(const char *bytes, size_t len, void *out)
{
    return fwrite(bytes, 1, len, out) == len;
}

/* One request after the other; what it asks for does not matter here. */
static void serve(rlock_client *client, int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0), caller;
    char request[4096];
    signal(SIGPIPE, SIG_IGN); /* a caller may go away */
    if (bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
        listen(listener, 8))
        fail("metrics", "the port cannot be had");
    while ((caller = accept(listener, NULL, NULL)) >= 0) {
        FILE *out = fdopen(caller, "w");
        if (read(caller, request, sizeof(request)) > 0) {
            fprintf(out, "HTTP/1.0 200 OK\r\nContent-Type: %s\r\n\r\n",
                    rlock_metrics_content_type(RLOCK_METRICS_TEXT));
            rlock_metrics_write(&client, 1, RLOCK_METRICS_TEXT, write_out, out);
        }
        fclose(out);
    }
}

int main(int argc, char **argv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *client;
    pthread_t thread[4];
    opts.uri = argc > 1 ? argv[1] : NULL;
    opts.metrics_label = "example";
    opts.metrics = true; /* histograms, too */
    MUST(rlock_client_new(&opts, &client));
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, work, client);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    MUST(
        rlock_metrics_write(&client, 1, RLOCK_METRICS_TEXT, write_out, stdout));
    if (argc > 2)
        serve(client, atoi(argv[2]));
    rlock_client_free(client);
    return 0;
}
