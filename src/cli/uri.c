/* Where the servers are, and with which password. A command line can be seen by
   everybody on the machine, so there are other ways to say it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cli.h"

#define DEFAULT_URI "redis://127.0.0.1:6379/0"

static bool add(cli_options *o, const char *uri, size_t len)
{
    if (o->uris == RLOCK_RED_MAX) {
        cli_say("more than %d servers", RLOCK_RED_MAX);
        return false;
    }
    if (!(o->uri[o->uris] = strndup(uri, len))) {
        cli_say("out of memory");
        return false;
    }
    o->uris++;
    return true;
}

bool cli_add_uri(cli_options *o, const char *uri)
{
    return add(o, uri, strlen(uri));
}

bool cli_add_uris(cli_options *o, const char *list)
{
    static const char blanks[] = " \t\r\n";
    for (list += strspn(list, blanks); *list; list += strspn(list, blanks)) {
        size_t len = strcspn(list, blanks);
        if (!add(o, list, len))
            return false;
        list += len;
    }
    return true;
}

bool cli_add_uri_file(cli_options *o, const char *path)
{
    char text[8192], shown[300];
    size_t before = o->uris;
    cli_printable_word(shown, sizeof shown, path);
    FILE *f = fopen(path, "re");
    if (!f) {
        cli_say("cannot read '%s': %s", shown, strerror(errno));
        return false;
    }
    size_t n = fread(text, 1, sizeof text - 1, f);
    bool bad = ferror(f) || !feof(f);
    fclose(f);
    text[n] = '\0';
    if (!bad && !cli_add_uris(o, text))
        return false;
    if (bad || o->uris == before) {
        cli_say("'%s' is no list of URIs", shown);
        return false;
    }
    return true;
}

/*
 * The part user:password of a URI: where it begins, and its length; 0: there is
 * none. *colon is where its password begins, with the colon, or its end.
 */
static size_t find_login(const char *uri, const char **login,
                         const char **colon)
{
    const char *address = strstr(uri, "://"), *at;
    if (!address)
        return 0;
    address += 3;
    size_t len = strcspn(address, "/?#");
    for (at = address + len; at > address && at[-1] != '@'; at--)
        ;
    if (at == address)
        return 0;
    *login = address;
    len = (size_t)(at - 1 - address);
    const char *found = memchr(address, ':', len);
    *colon = found ? found : address + len;
    return len;
}

/* The URI with another password; "": without one. NULL: no memory. */
static char *with_password(const char *uri, const char *password)
{
    const char *login = strstr(uri, "://"), *colon, *rest;
    login = colon = login ? login + 3 : uri;
    size_t len = find_login(uri, &login, &colon);
    rest = login + len + (len || *login == '@');
    size_t size = strlen(uri) + 3 * strlen(password) + 3;
    char *made = malloc(size), *to = made;
    if (!made)
        return NULL;
    to += sprintf(to, "%.*s", (int)(colon - uri), uri);
    if (*password)
        *to++ = ':';
    for (; *password; password++)
        to += sprintf(to, "%%%02X", (unsigned char)*password);
    if (to > made + (login - uri))
        *to++ = '@';
    strcpy(to, rest);
    return made;
}

char *cli_public_uri(const cli_options *o, size_t i)
{
    return with_password(o->uri[i], "");
}

char *cli_public_uris(const cli_options *o)
{
    size_t size = 1;
    for (size_t i = 0; i < o->uris; i++)
        size += strlen(o->uri[i]) + 3;
    char *all = calloc(1, size);
    for (size_t i = 0; all && i < o->uris; i++) {
        char *one = cli_public_uri(o, i);
        if (!one) {
            free(all);
            return NULL;
        }
        strcat(strcat(all, i ? " " : ""), one);
        free(one);
    }
    return all;
}

/* --- From the terminal, whatever stdin is --- */

static int tty = -1;
static struct termios as_it_was; /* of the terminal */

/* Leaves a terminal that shows what is typed, and ends as without this. */
static void end_by(int sig)
{
    tcsetattr(tty, TCSAFLUSH, &as_it_was);
    raise(sig);
}

/* What would end this process in the meantime; not what is ignored. */
static void handle_ends(void (*handler)(int))
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction a = {.sa_handler = handler,
                          .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    struct sigaction former;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        sigaction(ends[i], NULL, &former);
        if (former.sa_handler != SIG_IGN)
            sigaction(ends[i], &a, NULL);
    }
}

static ssize_t read_silently(char *password, size_t size)
{
    struct termios silent = as_it_was;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    handle_ends(end_by);
    tcsetattr(tty, TCSAFLUSH, &silent);
    (void)!write(tty, "Password: ", 10);
    ssize_t n = read(tty, password, size);
    tcsetattr(tty, TCSAFLUSH, &as_it_was);
    handle_ends(SIG_DFL);
    (void)!write(tty, "\n", 1);
    return n;
}

static bool ask(char *password, size_t size)
{
    tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (tty < 0 || tcgetattr(tty, &as_it_was) != 0) {
        cli_say("--askpass: there is no terminal to ask");
        if (tty >= 0)
            close(tty);
        return false;
    }
    ssize_t n = read_silently(password, size - 1);
    close(tty);
    password[n > 0 ? n : 0] = '\0';
    password[strcspn(password, "\n")] = '\0';
    if (n > 0)
        return true;
    cli_say("--askpass: no password was given");
    return false;
}

static bool put_password(cli_options *o, const char *password)
{
    for (size_t i = 0; i < o->uris; i++) {
        char *made = with_password(o->uri[i], password);
        if (!made) {
            cli_say("out of memory");
            return false;
        }
        free(o->uri[i]);
        o->uri[i] = made;
    }
    return true;
}

bool cli_complete_uris(cli_options *o)
{
    const char *env = getenv("RLOCK_URI");
    char password[512];
    if (o->uris == 0 && env && !cli_add_uris(o, env))
        return false;
    if (o->uris == 0 && !cli_add_uri(o, DEFAULT_URI))
        return false;
    if (!o->askpass)
        return true;
    return ask(password, sizeof password) && put_password(o, password);
}
