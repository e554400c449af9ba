/* An alarm that counts. */
#ifndef UNIT_ALARM_H
#define UNIT_ALARM_H

#include "hold/alarm.h"
#include "test.h"

/* It may be looked at after its alarm is freed. */
typedef struct tally {
    rl_alarm *alarm;
    int raised, closed;
} tally;

typedef struct tally_alarm {
    rl_alarm alarm;
    tally *b;
} tally_alarm;

static inline void tally_raise(rl_alarm *a)
{
    ((tally_alarm *)(void *)a)->b->raised++;
}

static inline void tally_close(rl_alarm *a)
{
    ((tally_alarm *)(void *)a)->b->closed++;
}

/* A new one, into the list, which alone has it. */
static inline void hang(rl_alarms *l, tally *b, const rl_uuid *of, bool lost)
{
    tally_alarm *x = malloc(sizeof *x);
    EXPECT(x);
    *b = (tally){.alarm = &x->alarm};
    x->b = b;
    rl_alarm_init(&x->alarm, of);
    x->alarm.raise = tally_raise;
    x->alarm.close = tally_close;
    EXPECT(rl_alarms_add(l, &x->alarm, lost));
    rl_alarm_unref(&x->alarm);
}

#endif
