#include "client/figures.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* Since when something has lasted; RL_NEVER: there is none. */
static void put_age(rl_counter *to, int64_t since_us, int64_t now_us)
{
    rl_add(to, (uint64_t)(since_us < now_us ? now_us - since_us : 0));
}

void rl_figures_read(rl_figures *to, rl_core *c, int64_t now_us)
{
    const rl_counter *from = (const rl_counter *)&c->stats;
    rl_counter *counted = (rl_counter *)&to->counted;
    memset(to, 0, sizeof *to);
    for (size_t i = 0; i < RL_COUNTERS; i++)
        rl_add(&counted[i], rl_count_of(&from[i]));
    to->timed = c->stats.times != NULL;
    for (size_t i = 0; to->timed && i < RL_TIMES; i++)
        rl_histogram_copy(&to->times[i], &c->stats.times[i]);
    put_age(&to->oldest_hold_us, rl_holds_oldest(&c->holds), now_us);
    put_age(&to->longest_wait_us, rl_rooms_longest(&c->rooms), now_us);
    rl_add(&to->one, 1);
    rl_label_escape(to->client, c->set.metrics_label,
                    strlen(c->set.metrics_label));
}

void rl_labels_write(char out[RL_LABELS_MAX], const rl_figures *f,
                     const rl_family *y, size_t i)
{
    int n = 0;
    *out = '\0';
    if (*f->client)
        n = snprintf(out, RL_LABELS_MAX, "client=\"%s\"", f->client);
    if (y->label)
        snprintf(out + n, RL_LABELS_MAX - (size_t)n, "%s%s=\"%s\"",
                 n ? "," : "", y->label, y->values[i]);
}

/* --- UTF-8 ---------------------------------------------------------------- */

/* How long is what begins so? 0: nothing does. */
static size_t length_of(unsigned char first)
{
    if (first < 0x80)
        return first ? 1 : 0;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Too long a form, a surrogate, or too large: by its second byte. */
static bool is_excluded(unsigned char first, unsigned char second)
{
    return (first == 0xe0 && second < 0xa0) ||
           (first == 0xed && second > 0x9f) ||
           (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
}

/* So many bytes are a character; 0: the first is no part of any. */
static size_t character(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = length_of(*s);
    if (n > len || (n > 1 && is_excluded(s[0], s[1])))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

void rl_label_escape(char *out, const char *text, size_t len)
{
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = character(text + i, len - i);
        if (n == 0) {
            memcpy(out, "\xef\xbf\xbd", 3);
            out += 3;
            continue;
        }
        if (text[i] == '\\' || text[i] == '"' || text[i] == '\n')
            *out++ = '\\';
        memcpy(out, text[i] == '\n' ? "n" : text + i, n);
        out += n;
    }
    *out = '\0';
}
