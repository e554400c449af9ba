/*
 * The world around line.pml's clients: the stranger, the clock, and what goes wrong;
 * and the end.
 */

#define OLDER(age) ((age) < LEASE -> (age) + 1 : LEASE)
#define LESS(ticks, least) ((ticks) > (least) -> (ticks) - 1 : (ticks))

inline grow_old()
{
    for (v : 0 .. OWNERS) {
        call[v].age = (call[v].verb == ACQUIRE -> OLDER(call[v].age) : 0)
    }
    for (v : 0 .. LAST) {
#ifndef DEADLINE_FROM_MESSAGE
        grant[v] = LESS(grant[v], 1);
#endif
        deadline[v] = LESS(deadline[v], 0)
    }
    for (v : 0 .. 1) {
        beat[v] = OLDER(beat[v])
    }
    v = 0
}

/* Nobody is told when a lease runs out, so the fronts look. */
inline run_down()
{
    left--;
    if
    :: left == 0 ->
        assert(!BELIEVES(holder));
        holder = NOBODY;
        looks[0] = 1;
        looks[1] = 1
    :: else
    fi
}

/* What was on its way is lost. */
inline cut()
{
    cuts--;
    hears[0] = 0;
    grant[0] = 0;
    grant[1] = 0
}

proctype World()
{
end:
    do
    :: d_step { holder == STRANGER -> holder = NOBODY; admit(NOBODY) }
#ifdef TIME
    :: d_step { left > 0 -> grow_old(); run_down() }
#endif
    :: d_step { signs > 0 && sign[0] && call[0].step != BUSY &&
           call[1].step != BUSY ->
           signs--;
           sign[0] = 0;
           silent = 1;
           looks[0] = 1 }
    :: d_step { refused > 0 -> refused--; refuses = 1 }
    :: d_step { cuts > 0 && hears[0] -> cut() }
    :: d_step { !hears[0] && !(bell[0] & 1) -> bell[0]++ }
    :: d_step { !hears[0] && (bell[0] & 1) ->
           hears[0] = 1;
           bell[0]++;
           stands[0] = 0;
           stands[1] = 0 }
    :: d_step { crashes > 0 && does[LAST] == ASLEEP && holder != LAST ->
           crashes--;
           hears[1] = 0;
           go_out(LAST, DEAD) }
    :: d_step { call[OWNERS].step == SENT -> execute(OWNERS); clear(OWNERS) }
    od
}

/* --- the judge ------------------------------------------------------------------- */

#define IS_OVER(w) (does[w] == GONE || does[w] == DEAD)

init {
    byte i;
    atomic {
        for (i : 0 .. LAST) {
            clear(i);
            run Owner(i);
            run Wire(i);
            run Doorbell(i)
        }
        clear(OWNERS);
        run World()
    };
    d_step {
        IS_OVER(0) && IS_OVER(1) && IS_OVER(LAST) && call[OWNERS].step == EMPTY ->
        assert(holder == NOBODY || holder == STRANGER);
        for (i : 0 .. LAST) {
            assert(line[i] == 0 || does[i] == DEAD)
        }
    }
}
