/* What verbs print: columns for people, JSON for programs. Nothing raw reaches
   a terminal by either. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <stdarg.h>

#include "cli.h"

/* All that was printed is out: the status, or what a failure of that makes of
   it. A pipe that nobody reads any more ends it quietly, as SIGPIPE does. */
int cli_printed(int status);

enum { CLI_COLUMNS_MAX = 10 };

/* Rows are put cell by cell; printed when all are there, as wide as the widest.
   Cells are printable already. */
typedef struct cli_table {
    const char *const *heads;
    size_t columns;
    char **cell; /* copies, n of them */
    size_t n, room;
    bool lacking; /* memory, once */
} cli_table;

void cli_table_put(cli_table *t, const char *text);
void cli_table_putf(cli_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints and frees it; false: memory was lacking, and that has been said. */
bool cli_table_print(cli_table *t);
void cli_table_free(cli_table *t);

/* An object on stdout. key: NULL inside an array, and of the outermost one. */
typedef struct cli_json {
    bool comma; /* before what comes next */
} cli_json;

void cli_json_open(cli_json *j, const char *key, char bracket);
void cli_json_shut(cli_json *j, char bracket);
/* Bytes that are no UTF-8: as hexadecimal digits, and _hex behind the key. */
void cli_json_bytes(cli_json *j, const char *key, const char *text, size_t len);
void cli_json_text(cli_json *j, const char *key, const char *text);
void cli_json_word(cli_json *j, const char *key, const char *word);
void cli_json_bool(cli_json *j, const char *key, bool is);
void cli_json_number(cli_json *j, const char *key, int64_t n, bool known);

#endif
