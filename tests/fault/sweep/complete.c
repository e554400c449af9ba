/* No function of the headers is forgotten. */
#include "rows.h"

static const char *const headers[] = {"base.h",  "client.h", "lock.h",
                                      "multi.h", "guard.h",  "owner.h",
                                      "async.h", "scan.h",   "metrics.h"};

static bool has_row(const char *function, size_t len)
{
    for (size_t i = 0; i < n_rows; i++) {
        if (strlen(rows[i].function) == len &&
            memcmp(rows[i].function, function, len) == 0)
            return true;
    }
    return false;
}

static char *read_header(const char *name)
{
    static char text[65536];
    char path[400];
    snprintf(path, sizeof path, "%s/include/rlock/%s", RLOCK_SOURCE_DIR, name);
    FILE *file = fopen(path, "re");
    if (!file)
        FAIL("cannot open %s", path);
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    EXPECT(len < sizeof text - 1);
    text[len] = '\0';
    return text;
}

/* The name before the first parenthesis after each RLOCK_API. */
static int functions_without_row(const char *text, int *functions)
{
    int missing = 0;
    for (const char *at = text; (at = strstr(at, "\nRLOCK_API ")) != NULL;) {
        at += strlen("\nRLOCK_API ");
        const char *end = at + strcspn(at, "("), *name = end;
        while (name[-1] == '_' || (name[-1] >= 'a' && name[-1] <= 'z'))
            name--;
        ++*functions;
        if (!has_row(name, (size_t)(end - name))) {
            fprintf(stderr, "no row: %.*s\n", (int)(end - name), name);
            missing++;
        }
    }
    return missing;
}

TEST(sweep, every_function_of_the_headers_has_a_row)
{
    int missing = 0, functions = 0;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        missing += functions_without_row(read_header(headers[i]), &functions);
    EXPECT_INT(missing, 0);
    EXPECT(functions >= 20);
}
