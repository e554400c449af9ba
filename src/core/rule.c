#include "core/rule.h"

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
    return (op->early || !waits) && (ok >= op->quorum || hope < op->quorum);
}
