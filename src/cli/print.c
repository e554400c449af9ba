/* What verbs print: columns for people, JSON for programs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

/* Who reads no more has not to be told; that there is no room is a failure. */
int cli_printed(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (errno == EPIPE)
        return 128 + SIGPIPE;
    cli_say("cannot write: %s", strerror(errno));
    return CLI_FAILED;
}

/* --- Columns -------------------------------------------------------------- */

void cli_table_put(cli_table *t, const char *text)
{
    char **cell = t->cell;
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 64;
        cell = realloc(cell, room * sizeof *cell);
        t->lacking = t->lacking || !cell;
        if (!cell)
            return;
        t->cell = cell;
        t->room = room;
    }
    cell[t->n] = strdup(text);
    if (cell[t->n])
        t->n++;
    else
        t->lacking = true;
}

void cli_table_putf(cli_table *t, const char *fmt, ...)
{
    char text[64];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cli_table_put(t, text);
}

static const char *cell_at(const cli_table *t, size_t i)
{
    return i < t->columns ? t->heads[i] : t->cell[i - t->columns];
}

static size_t width_of(const cli_table *t, size_t column)
{
    size_t width = 0;
    for (size_t i = column; i < t->columns + t->n; i += t->columns) {
        size_t len = strlen(cell_at(t, i));
        width = len > width ? len : width;
    }
    return width;
}

void cli_table_free(cli_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->cell[i]);
    free(t->cell);
}

/* No line ends with blanks. */
static void print_row(const cli_table *t, const size_t *width, size_t first)
{
    size_t k = 0, n = t->columns;
    while (n > 1 && !*cell_at(t, first + n - 1))
        n--;
    for (; k + 1 < n; k++)
        printf("%-*s  ", (int)width[k], cell_at(t, first + k));
    printf("%s\n", cell_at(t, first + k));
}

bool cli_table_print(cli_table *t)
{
    size_t width[CLI_COLUMNS_MAX] = {0};
    for (size_t k = 0; k < t->columns; k++)
        width[k] = width_of(t, k);
    for (size_t i = 0; !t->lacking && i < t->columns + t->n; i += t->columns)
        print_row(t, width, i);
    cli_table_free(t);
    if (t->lacking)
        cli_say("out of memory");
    return !t->lacking;
}

/* --- JSON ----------------------------------------------------------------- */

/* How long the UTF-8 sequence at s is; 0: it is none. */
static size_t sequence(const unsigned char *s, size_t len)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80             ? 1
               : (s[0] & 0xe0) == 0xc0 ? 2
               : (s[0] & 0xf0) == 0xe0 ? 3
               : (s[0] & 0xf8) == 0xf0 ? 4
                                       : 0;
    if (n <= 1)
        return n;
    unsigned point = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (i >= len || (s[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (s[i] & 0x3fu);
    }
    bool half = point >= 0xd800 && point <= 0xdfff;
    return point < least[n] || half || point > 0x10ffff ? 0 : n;
}

static bool is_utf8(const unsigned char *s, size_t len)
{
    for (size_t n; len > 0; s += n, len -= n) {
        if ((n = sequence(s, len)) == 0)
            return false;
    }
    return true;
}

/* What a terminal would obey is escaped: C0, DEL, and C1, which is c2 80 to c2
   9f. */
static void put_text(const unsigned char *s, size_t len)
{
    putchar('"');
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '"' || s[i] == '\\')
            printf("\\%c", s[i]);
        else if (s[i] < 0x20 || s[i] == 0x7f)
            printf("\\u%04x", s[i]);
        else if (s[i] == 0xc2 && s[i + 1] < 0xa0)
            printf("\\u%04x", s[++i]);
        else
            putchar(s[i]);
    }
    putchar('"');
}

static void put_key(cli_json *j, const char *key, const char *suffix)
{
    if (j->comma)
        putchar(',');
    if (key)
        printf("\"%s%s\":", key, suffix);
    j->comma = true;
}

void cli_json_open(cli_json *j, const char *key, char bracket)
{
    put_key(j, key, "");
    putchar(bracket);
    j->comma = false;
}

void cli_json_shut(cli_json *j, char bracket)
{
    putchar(bracket);
    j->comma = true;
}

void cli_json_bytes(cli_json *j, const char *key, const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    if (is_utf8(s, len)) {
        put_key(j, key, "");
        put_text(s, len);
        return;
    }
    put_key(j, key, "_hex");
    putchar('"');
    for (size_t i = 0; i < len; i++)
        printf("%02x", s[i]);
    putchar('"');
}

void cli_json_text(cli_json *j, const char *key, const char *text)
{
    if (text)
        cli_json_bytes(j, key, text, strlen(text));
    else
        cli_json_word(j, key, "null");
}

void cli_json_word(cli_json *j, const char *key, const char *word)
{
    put_key(j, key, "");
    printf("%s", word);
}

void cli_json_bool(cli_json *j, const char *key, bool is)
{
    cli_json_word(j, key, is ? "true" : "false");
}

void cli_json_number(cli_json *j, const char *key, int64_t n, bool known)
{
    put_key(j, key, "");
    if (known)
        printf("%lld", (long long)n);
    else
        printf("null");
}
