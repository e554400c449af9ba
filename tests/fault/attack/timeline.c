#include "report.h"

void timeline(const char *path, const arena *a, const verdict *v)
{
    (void)path;
    (void)a;
    (void)v;
}
