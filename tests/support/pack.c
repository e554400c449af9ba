#include "pack.h"

#include "scene.h"

const char pack_of_two[] = "trap '' TERM; sleep 100 & echo $! >\"$1\"; "
                           "echo $$ >\"$2\"; wait; wait";

pack pack_start(const char *kind, const char *lease, const char *script)
{
    pack p = {.sv = server_start(NULL)};
    const char *child = command_file(p.sv, "child");
    const char *command = command_file(p.sv, "command");
    p.c = kind ? RLOCK(p.sv, "run", kind, "-l", lease, SCENE_LOCK, "sh", "-c",
                       script, "sh", child, command)
               : RLOCK(p.sv, "run", "-l", lease, SCENE_LOCK, "sh", "-c", script,
                       "sh", child, command);
    p.command = command_number(p.sv, "command");
    p.child = command_number(p.sv, "child");
    return p;
}

bool pack_is_gone(const pack *p)
{
    return !process_is_alive(p->command) && !process_is_alive(p->child);
}

void pack_stop(pack *p)
{
    command_free(p->c);
    server_stop(p->sv);
}
