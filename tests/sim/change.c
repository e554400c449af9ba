#include "change.h"

master_change change;

void change_begin(int old, int heir)
{
    change.is_on = true;
    change.old = old;
    change.heir = heir;
    change.began = w.now;
}

void change_then(void (*fire)(event *e), int64_t ns)
{
    change.next.fire = fire;
    event_set(&change.next, w.now + ns);
}

void change_settled(event *e)
{
    (void)e;
    change.is_on = false;
}
