#include "op/rule.h"

#include <stdio.h>

size_t rl_rule_ok(const rl_op *op)
{
    size_t ok = 0;
    for (size_t i = 0; i < op->n; i++)
        ok += op->part[i] && op->part[i]->due && op->part[i]->ok;
    return ok;
}

bool rl_rule_is_decided(const rl_op *op)
{
    size_t ok = rl_rule_ok(op), hope = ok;
    bool waits = false;
    for (size_t i = 0; i < op->n; i++) {
        const rl_part *x = op->part[i];
        if (!x || !x->due || x->over)
            continue;
        hope += !x->silent;
        waits = waits || (x->awaited && !x->slow);
    }
    bool settled =
        ok >= op->quorum && (hope == ok || !op->settles || op->settles(op));
    return (op->early || !waits) && (settled || hope < op->quorum);
}

void rl_rule_tell(const rl_op *op, char out[RL_SAYS_MAX])
{
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < op->n && used < RL_SAYS_MAX - 1; i++) {
        const rl_part *x = op->part[i];
        size_t fair = (RL_SAYS_MAX - used) / (op->n - i);
        const char *text = op->closed >> i & 1    ? "the client is closed"
                           : op->lacking >> i & 1 ? "out of memory"
                           : op->late >> i & 1    ? "no answer so far"
                           : !x                   ? "left out"
                           : x->ok                ? "ok"
                           : *x->fault.text       ? x->fault.text
                           : !x->over             ? "no answer so far"
                                                  : "not asked";
        int n =
            snprintf(out + used, fair, "%s%zu %s", i ? "; " : "", i + 1, text);
        used += (size_t)n < fair ? (size_t)n : fair - 1;
    }
}
