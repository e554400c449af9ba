/*
 * Locks that are a string or a timestamp, when somebody takes them away: the
 * holder is told, and touches nothing that is not its own.
 */
#include "layouts.h"

typedef rlock_status verb(rlock *lk);

static rlock_status acquire_long(rlock *lk)
{
    return rlock_acquire(lk, 0, 900000);
}

static rlock_status extend_long(rlock *lk)
{
    return rlock_extend(lk, 900000);
}

static void expect_told_of_deletion(rlock_layout layout, verb *fn)
{
    scene s = scene_of_held(layout, 0);
    others_release(s.sv);
    EXPECT_STATUS(fn(s.lk), RLOCK_LOST);
    EXPECT(!held_on_server(s.sv));
    unlock_lost(&s);
    scene_stop(&s);
}

static void expect_not_touched(rlock_layout layout, verb *fn)
{
    scene s = scene_of_held(layout, 0);
    text theirs = others_overwrite(s.sv, layout);
    EXPECT_STATUS(fn(s.lk), RLOCK_LOST);
    unlock_lost(&s);
    expect_value(s.sv, theirs.is);
    EXPECT(key_ttl(s.sv, SCENE_LOCK) < 130000);
    scene_stop(&s);
}

BOTH(layouts_loss, unlock_tells_that_the_key_was_deleted)
{
    scene s = scene_of_held(layout, 0);
    others_release(s.sv);
    unlock_lost(&s);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(layouts_loss, an_inner_unlock_tells_that_the_key_was_deleted)
{
    scene s = scene_of_held(layout, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    others_release(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT(!rlock_is_held(s.lk));
    unlock_lost(&s);
    scene_stop(&s);
}

BOTH(layouts_loss, a_nested_acquire_tells_that_the_key_was_deleted)
{
    expect_told_of_deletion(layout, rlock_lock);
}

BOTH(layouts_loss, extend_tells_that_the_key_was_deleted)
{
    expect_told_of_deletion(layout, extend_long);
}

BOTH(layouts_loss, the_watchdog_tells_that_the_key_was_deleted)
{
    scene s = scene_of_held(layout, 900);
    others_release(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(!held_on_server(s.sv));
    unlock_lost(&s);
    scene_stop(&s);
}

BOTH(layouts_loss, unlock_does_not_touch_who_has_overwritten_it)
{
    scene s = scene_of_held(layout, 0);
    text theirs = others_overwrite(s.sv, layout);
    unlock_lost(&s);
    expect_value(s.sv, theirs.is);
    scene_stop(&s);
}

BOTH(layouts_loss, a_nested_acquire_does_not_touch_who_has_overwritten_it)
{
    expect_not_touched(layout, acquire_long);
}

BOTH(layouts_loss, extend_does_not_touch_who_has_overwritten_it)
{
    expect_not_touched(layout, extend_long);
}

BOTH(layouts_loss, the_watchdog_does_not_touch_who_has_overwritten_it)
{
    scene s = scene_of_held(layout, 900);
    text theirs = others_overwrite(s.sv, layout);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    unlock_lost(&s);
    expect_value(s.sv, theirs.is);
    scene_stop(&s);
}

/* Another of ours has it now. */
BOTH(layouts_loss, a_late_unlock_does_not_touch_the_next_hold)
{
    scene s = scene_of(layout, 0);
    other_client b = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    others_release(s.sv);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    text value = value_of(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    expect_value(s.sv, value.is);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
    scene_stop(&s);
}

BOTH(layouts_loss, force_unlock_tells_the_holder)
{
    scene s = scene_of(layout, 900);
    other_client b = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(b.lk), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    EXPECT_STATUS(rlock_force_unlock(b.lk), RLOCK_NOT_HELD);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    unlock_lost(&s);
    other_client_leave(&b);
    scene_stop(&s);
}
