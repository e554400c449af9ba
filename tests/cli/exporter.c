/* `rlock exporter`: what a server has, as a file and by HTTP. */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "layouts.h"
#include "scene.h"

/* --- Into a file ---------------------------------------------------------- */

/* What the file has; "": it is not there. Valid until the next. */
static const char *text_of(const char *path)
{
    static char text[16384];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    return text;
}

TEST(exporter, a_file_tells_what_is_held_and_waited_for)
{
    scene s = scene_held(0, 0);
    const char *path = command_file(s.sv, "rlock.prom");
    server_cmd(s.sv, "ZADD rlock_queue:{job} 1000 rlock_bell:1");
    EXPECT_STR(
        command_prints(s.sv, WORDS("exporter", "--textfile", path, "-n", "1")),
        "");
    const char *text = text_of(path);
    EXPECT_CONTAINS(text, "# TYPE rlock_up gauge\nrlock_up{server=\"unix://");
    EXPECT_CONTAINS(text, "\"} 1\n# HELP rlock_server_held ");
    EXPECT_CONTAINS(strstr(text, "\nrlock_server_held{"), "\"} 1\n");
    EXPECT_CONTAINS(strstr(text, "\nrlock_server_waiting{"), "\"} 1\n");
    EXPECT_CONTAINS(strstr(text, "\nrlock_server_circles{"), "\"} 0\n");
    scene_stop(&s);
}

TEST(exporter, a_label_is_one_line)
{
    server *sv = server_start(NULL);
    const char *path = command_file(sv, "rlock.prom");
    command *c = RLOCK(NULL, "-u", "unix:///no/such\nsocket", "exporter",
                       "--textfile", path, "-n", "1");
    command_status(c);
    EXPECT_CONTAINS(text_of(path),
                    "\nrlock_up{server=\"unix:///no/such\\nsocket\"} 0\n");
    command_free(c);
    server_stop(sv);
}

TEST(exporter, the_file_is_written_again_and_again_and_tells_of_a_dead_server)
{
    server *sv = server_start(NULL);
    char path[200];
    snprintf(path, sizeof path, "%s", command_file(sv, "rlock.prom"));
    command *c = RLOCK(sv, "exporter", "--textfile", path, "-d", "0.1");
    EVENTUALLY(SOON, strstr(text_of(path), "\nrlock_server_held{"));
    server_kill(sv);
    EVENTUALLY(SOON, strstr(text_of(path), "\"} 0\n# HELP rlock_server_held"));
    EXPECT(!strstr(text_of(path), "\nrlock_server_held{"));
    kill(command_front(c), SIGTERM);
    EXPECT_INT(command_end(c), -SIGTERM);
    server_stop(sv);
}

TEST(exporter, a_file_that_cannot_be_written_is_named)
{
    server *sv = server_start(NULL);
    command_fails(sv, WORDS("exporter", "--textfile", "/no/such/folder/f"),
                  "cannot write /no/such/folder/f");
    server_stop(sv);
}

/* A file is renamed to that, so what else was there would be gone. */
TEST(exporter, what_is_no_file_is_not_replaced_by_one)
{
    struct stat st;
    server *sv = server_start(NULL);
    const char *pipe = command_file(sv, "pipe");
    EXPECT_INT(mkfifo(pipe, 0600), 0);
    command_fails(sv, WORDS("exporter", "--textfile", pipe, "-n", "1"),
                  "is there, and is no file");
    EXPECT(lstat(pipe, &st) == 0 && S_ISFIFO(st.st_mode));
    server_stop(sv);
}

TEST(exporter, a_server_that_is_there_twice_is_refused)
{
    server *sv = server_start(NULL);
    command_fails(sv,
                  WORDS("-u", server_uri(sv), "-u", server_uri(sv), "exporter",
                        "--textfile", command_file(sv, "rlock.prom"), "-n",
                        "1"),
                  "is there twice");
    server_stop(sv);
}

TEST_CASE(exporter, a_delay_that_is_none,
          command_is_misused(WORDS("exporter", "-d", "0"),
                             "-d is 0.1 seconds or more"))
TEST_CASE(exporter, both_ways_at_once,
          command_is_misused(WORDS("exporter", "--listen", "127.0.0.1:1",
                                   "--textfile", "f"),
                             "either --listen or --textfile"))

/* --- By HTTP -------------------------------------------------------------- */

#ifdef RLOCK_MICROHTTPD

/* The answer to a GET; "": nobody listens. Valid until the next. */
static const char *ask(int port, const char *method, const char *path)
{
    static char text[16384];
    size_t n = 0;
    ssize_t got = 1;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        dprintf(fd, "%s %s HTTP/1.0\r\n\r\n", method, path);
    else
        got = 0;
    while (got > 0 && n < sizeof text - 1) {
        got = read(fd, text + n, sizeof text - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    text[n] = '\0';
    return text;
}

static const char *get(int port, const char *path)
{
    return ask(port, "GET", path);
}

TEST(exporter, it_serves_figures_until_a_signal_ends_it)
{
    scene s = scene_held(0, 0);
    char listen[40];
    int port = server_free_port();
    snprintf(listen, sizeof listen, "127.0.0.1:%d", port);
    command *c = RLOCK(s.sv, "exporter", "--listen", listen);
    EVENTUALLY(SOON, strstr(get(port, "/metrics"), "200 OK"));
    const char *text = get(port, "/metrics");
    EXPECT_CONTAINS(text, "Content-Type: text/plain; version=0.0.4\r\n");
    EXPECT_CONTAINS(strstr(text, "\nrlock_server_held{"), "\"} 1\n");
    EXPECT_CONTAINS(get(port, "/other"), "404 ");
    EXPECT_CONTAINS(ask(port, "POST", "/metrics"), "405 ");
    EXPECT_CONTAINS(ask(port, "OPTIONS", "/metrics"), "Allow: GET, HEAD\r\n");
    kill(command_front(c), SIGTERM);
    EXPECT_INT(command_end(c), 0);
    scene_stop(&s);
}

TEST_CASE(exporter, a_port_that_there_is_not,
          command_is_misused(WORDS("exporter", "--listen", "127.0.0.1:99999"),
                             "--listen is ADDR:PORT"))

TEST(exporter, it_starts_before_its_server_and_says_that_it_is_not_there)
{
    char listen[40];
    int port = server_free_port();
    snprintf(listen, sizeof listen, "127.0.0.1:%d", port);
    command *c = RLOCK(NULL, "-u", "unix:///nowhere/at/all", "exporter",
                       "--listen", listen);
    EVENTUALLY(SOON, strstr(get(port, "/metrics"),
                            "\nrlock_up{server=\"unix:///nowhere/at/all\"} 0"));
    kill(command_front(c), SIGINT);
    EXPECT_INT(command_end(c), 0);
}

TEST(exporter, a_port_that_another_has_is_said)
{
    server *sv = server_start_tcp(NULL);
    char listen[40];
    snprintf(listen, sizeof listen, "127.0.0.1:%d", server_port(sv));
    command *c = RLOCK(sv, "exporter", "--listen", listen);
    EXPECT_INT(command_status(c), 125);
    EXPECT_CONTAINS(command_err(c), "cannot listen at 127.0.0.1:");
    command_free(c);
    server_stop(sv);
}

TEST_CASE(exporter, an_address_that_is_none,
          command_is_misused(WORDS("exporter", "--listen", "nowhere"),
                             "--listen is ADDR:PORT, and not 'nowhere'"))
TEST_CASE(exporter, an_address_without_a_port,
          command_is_misused(WORDS("exporter", "--listen", "127.0.0.1:"),
                             "--listen is ADDR:PORT, and not '127.0.0.1:'"))

#endif
