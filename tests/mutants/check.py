"""The finders are judged: in a few lines of C and Lua, what becomes of each.

Looked at by each run. A row is a line of source and all that has to be made of it.
"""
import c_places
import lua_places

C = {
    'if (a < b) return;': {
        'compare': ['if (a <= b) return;'], 'negate': ['if (!(a < b)) return;'],
        'drop check': ['if (0 && (a < b)) return;']},
    'if (a == 0 && !b) c = a ? b : 1; else d();': {
        'compare': ['if (a != 0 && !b) c = a ? b : 1; else d();'],
        'logic': ['if (a == 0 || !b) c = a ? b : 1; else d();'],
        'negate': ['if (!(a == 0 && !b)) c = a ? b : 1; else d();',
                   'if (a == 0 && b) c = a ? b : 1; else d();',
                   'if (a == 0 && !b) c = !(a) ? b : 1; else d();'],
        'never': ['if (0 && (a == 0 && !b)) c = a ? b : 1; else d();'],
        'always': ['if (1 || (a == 0 && !b)) c = a ? b : 1; else d();'],
        'drop': ['if (a == 0 && !b) (void)0; else d();',
                 'if (a == 0 && !b) c = a ? b : 1; else (void)0;'],
        'constant': ['if (a == 1 && !b) c = a ? b : 1; else d();',
                     'if (a == (-1) && !b) c = a ? b : 1; else d();',
                     'if (a == 0 && !b) c = a ? b : 2; else d();',
                     'if (a == 0 && !b) c = a ? b : 0; else d();']},
    'char *p = f(-a, b * 2), q[8]; /* a < b */': {
        'argument': ['char *p = f(b * 2, -a), q[8]; /* a < b */'],
        'arithmetic': ['char *p = f(-a, b / 2), q[8]; /* a < b */'],
        'constant': ['char *p = f(-a, b * 3), q[8]; /* a < b */',
                     'char *p = f(-a, b * 1), q[8]; /* a < b */']},
    'for (int i = 0; i < n; i++) x->y += rl_min(a, "1 < 2");': {
        'constant': ['for (int i = 1; i < n; i++) x->y += rl_min(a, "1 < 2");',
                     'for (int i = (-1); i < n; i++) x->y += rl_min(a, "1 < 2");'],
        'compare': ['for (int i = 0; i <= n; i++) x->y += rl_min(a, "1 < 2");'],
        'negate': ['for (int i = 0; !(i < n); i++) x->y += rl_min(a, "1 < 2");'],
        'drop': ['for (int i = 0; i < n; i++) (void)0;'],
        'arithmetic': ['for (int i = 0; i < n; i++) x->y -= rl_min(a, "1 < 2");',
                       'for (int i = 0; i < n; i++) x->y += rl_max(a, "1 < 2");']},
    'b = !strcmp(a, c); d(memcmp(a, c, e) == f, memcmp(a, c, e));': {
        'negate': ['b = strcmp(a, c); d(memcmp(a, c, e) == f, memcmp(a, c, e));'],
        'compare': ['b = !strcmp(a, c); d(memcmp(a, c, e) != f, memcmp(a, c, e));'],
        'drop': ['(void)0; d(memcmp(a, c, e) == f, memcmp(a, c, e));',
                 'b = !strcmp(a, c); (void)0;'],
        'argument': ['b = !strcmp(a, c); d(memcmp(a, e, c) == f, memcmp(a, c, e));',
                     'b = !strcmp(a, c); d(memcmp(a, c, e) == f, memcmp(c, a, e));',
                     'b = !strcmp(a, c); d(memcmp(a, c, e) == f, memcmp(a, e, c));',
                     'b = !strcmp(a, c); d(memcmp(a, c, e), memcmp(a, c, e) == f);']},
    'switch (a) { case 1: (void)f(); break; default: continue; }': {
        'drop': ['switch (a) { case 1: (void)0; break; default: continue; }',
                 'switch (a) { case 1: (void)f(); __attribute__((fallthrough)); '
                 'default: continue; }',
                 'switch (a) { case 1: (void)f(); break; default: (void)0; }']},
    'return (int)*p - r->element[1];': {
        'arithmetic': ['return (int)*p + r->element[1];'],
        'argument': ['return (int)*p - r->element[2];',
                     'return (int)*p - r->element[0];']},
}

LUA = {
    "if a ~= 1 then return {-1} end": {
        'compare': ['if a == 1 then return {-1} end'],
        'drop check': ['if false and (a ~= 1) then return {-1} end'],
        'constant': ['if a ~= 2 then return {-1} end',
                     'if a ~= 0 then return {-1} end',
                     'if a ~= 1 then return {-2} end',
                     'if a ~= 1 then return {-0} end']},
    "rcall('DEL', KEYS[1]) b = math.min(a, b) -- 1 < 2": {
        'drop': ['b = math.min(a, b) -- 1 < 2', "rcall('DEL', KEYS[1]) -- 1 < 2"],
        'argument': ["rcall('DEL', KEYS[2]) b = math.min(a, b) -- 1 < 2"],
        'arithmetic': ["rcall('DEL', KEYS[1]) b = math.max(a, b) -- 1 < 2"]},
    "local x = not a and b or f('1')": {
        'negate': ["local x = a and b or f('1')"],
        'logic': ["local x = not a or b or f('1')",
                  "local x = not a and b and f('1')"]},
}


def found(find, path, before, line, after):
    made = {}
    for p in find(path, before + line + after):
        if p.operator != 'early return':
            made.setdefault(p.operator, []).append(p.after.strip())
    return made


def wrong():
    """What was not found, or is too much; '' if all is as it is written here."""
    for line, wanted in C.items():
        made = found(c_places.find, 'src/op/x.c', 'int f(void)\n{\n', line, '\n}\n')
        if as_sets(made) != as_sets(wanted):
            return '%s\n%s' % (line, differences(made, wanted))
    for line, wanted in LUA.items():
        made = found(lua_places.find, 'lua/x.lua', '\n', line, '\n')
        if as_sets(made) != as_sets(wanted):
            return '%s\n%s' % (line, differences(made, wanted))
    returns = [p.after for p in c_places.find(
        'src/op/x.c', 'static bool f(void)\n{\n}\nvoid g(int a)\n{\n}\n'
        'static const char *h(void) RL_REQUIRES(m)\n{\n}\n')]
    wanted = ['{ return false;', '{ return true;', '{ return;',
              '{ return (char *){0};']
    return '' if returns == wanted else 'early return: %s' % returns


def as_sets(made):
    return {operator: set(lines) for operator, lines in made.items()}


def differences(made, wanted):
    lines = []
    for operator in sorted(set(made) | set(wanted)):
        a, b = set(made.get(operator, [])), set(wanted.get(operator, []))
        lines += ['  not found: %s: %s' % (operator, x) for x in sorted(b - a)]
        lines += ['  too much: %s: %s' % (operator, x) for x in sorted(a - b)]
    return '\n'.join(lines)
