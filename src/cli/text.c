/* What people read, and the numbers that they write. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

char *cli_printable_n(char *to, size_t size, const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n + 5 < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c < 0x7f)
            to[n++] = (char)c;
        else
            n += (size_t)snprintf(to + n, size - n, "\\x%02x", c);
    }
    to[n] = '\0';
    return to;
}

char *cli_printable(char *to, size_t size, const char *text)
{
    return cli_printable_n(to, size, text, strlen(text));
}

char *cli_printable_word(char *to, size_t size, const char *text)
{
    const char *address = strstr(text, "://");
    if (!address)
        return cli_printable(to, size, text);
    cli_printable_n(to, size - 3, text, (size_t)(address - text) + 3);
    return strcat(to, "...");
}

char *cli_duration(char *to, size_t size, int64_t ms)
{
    long long s = ms / 1000;
    if (ms < 0)
        snprintf(to, size, "-");
    else if (s < 60)
        snprintf(to, size, "%lld.%llds", s, (long long)ms % 1000 / 100);
    else if (s < 3600)
        snprintf(to, size, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(to, size, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(to, size, "%lldd%02lldh", s / 86400, s / 3600 % 24);
    return to;
}

/* One line, so that those of several processes stay whole, and nothing raw in it:
   a server's words may be there. */
static void say(const char *fmt, va_list ap)
{
    char text[1200], line[sizeof text] = "rlock: ";
    size_t n = strlen(line);
    vsnprintf(text, sizeof text, fmt, ap);
    cli_printable(line + n, sizeof line - n - 1, text);
    n = strlen(line);
    line[n++] = '\n';
    (void)!write(STDERR_FILENO, line, n);
}

void cli_say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
}

int cli_misused(const cli_verb *v, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
    if (v)
        fprintf(stderr, "usage: rlock %s %s\n", v->name, v->usage);
    else
        fprintf(stderr, "usage: rlock [options] VERB ...; rlock --help tells "
                        "them\n");
    return CLI_FAILED;
}

int cli_bad_option(const cli_verb *v, char **argv)
{
    char shown[80];
    const char *where = v ? v->name : "options", *said = argv[optind - 1];
    if (optopt && strncmp(said, "--", 2) != 0) {
        char letter[3] = {'-', (char)optopt};
        cli_printable(shown, sizeof shown, letter);
    } else {
        /* What one that there is not was to be given may be a password, and what
           is none may be a URI. */
        cli_printable_n(shown, sizeof shown, said,
                        optopt ? strlen(said) : strcspn(said, "=:"));
    }
    return cli_misused(v, "%s: unknown option '%s', or its value is missing",
                       where, shown);
}

bool cli_seconds(const char *text, int64_t *ms)
{
    char *end;
    /* No blanks, signs, "inf", nor hexadecimal numbers. */
    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return false;
    if (text[strspn(text, "0123456789.")])
        return false;
    double s = strtod(text, &end);
    if (end == text || *end || !(s <= 1e9))
        return false;
    *ms = (int64_t)(s * 1000 + 0.999);
    return true;
}

bool cli_number(const char *text, long least, long most, long *n)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    *n = strtol(text, &end, 10);
    return !errno && !*end && *n >= least && *n <= most;
}
