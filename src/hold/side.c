#include "hold/side.h"

rl_hold *rl_hold_other_side_locked(rl_holds *t, const rl_hold *h)
{
    rl_target other = {.name = rl_hold_name(h),
                       .len = h->name_len,
                       .scope = rl_other_side(h->scope)};
    return rl_layout_is_side(rl_hold_layout(h))
               ? rl_holds_find_locked(t, &other, rl_hold_owner(h))
               : NULL;
}

bool rl_hold_joins(rl_holds *t, rl_hold *draft, rl_uuid *other)
{
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_hold_other_side_locked(t, draft);
    bool joins = h && h->state == RL_HELD;
    if (joins) {
        *other = h->id;
        h->paired = draft->paired = true;
    }
    rl_mutex_unlock(&t->mutex);
    return joins;
}

bool rl_hold_is_paired(rl_holds *t, const rl_hold *h)
{
    rl_mutex_lock(&t->mutex);
    bool paired = h->paired;
    rl_mutex_unlock(&t->mutex);
    return paired;
}

void rl_hold_share_token(rl_holds *t, const rl_hold *draft, uint64_t token)
{
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_hold_other_side_locked(t, draft);
    if (h && rl_hold_layout(h)->kind == RLOCK_KIND_READ && h->token < token)
        h->token = token;
    rl_mutex_unlock(&t->mutex);
}
