#include "hold/name_stats.h"

#include "base/named.h"

bool rl_stats_name(rl_stats *s, size_t names)
{
    s->named = rl_named_new(names, sizeof(rl_name_stats));
    return s->named != NULL;
}

void rl_stats_add_named(rl_stats *s, const rl_counter *what, const char *name,
                        size_t len, int64_t n)
{
    rl_name_stats *of = rl_named_of(s->named, name, len)->bytes;
    rl_add(&of->counted[what - (const rl_counter *)s], (uint64_t)n);
}

void rl_stats_record_named(rl_stats *s, rl_time what, const char *name,
                           size_t len, int64_t us)
{
    rl_name_stats *of = rl_named_of(s->named, name, len)->bytes;
    rl_histogram_record(&of->times[what], us);
}
