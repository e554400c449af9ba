/*
 * Lua as Redis embeds it, as far as the scripts can tell: KEYS and ARGV,
 * redis.call, redis.pcall and redis.error_reply, and Redis' conversions between
 * replies and values. Commands answer in RESP and that is turned into values,
 * as Redis does it, so there is one form of a reply.
 *
 * One interpreter serves all servers and seeds, for scripts keep nothing: they
 * may not make globals, and a script that reads or sets one fails here.
 */
#include "script.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/script.h"

static lua_State *lua;
static store *current;
static int compiled[RL_SCRIPT_COUNT]; /* references to functions; 0: not yet */

/* --- replies into values -------------------------------------------------- */

static const char *push_reply(lua_State *l, const char *at);

static const char *push_bulk(lua_State *l, const char *at, long long len)
{
    if (len < 0) {
        lua_pushboolean(l, 0);
        return at;
    }
    lua_pushlstring(l, at, (size_t)len);
    return at + len + 2;
}

static const char *push_array(lua_State *l, const char *at, long long n)
{
    lua_createtable(l, (int)n, 0);
    for (long long i = 1; i <= n; i++) {
        at = push_reply(l, at);
        lua_rawseti(l, -2, (int)i);
    }
    return at;
}

/* {ok = line} or {err = line} */
static void push_line(lua_State *l, const char *name, const char *at,
                      const char *end)
{
    lua_createtable(l, 0, 1);
    lua_pushlstring(l, at, (size_t)(end - at));
    lua_setfield(l, -2, name);
}

static const char *push_reply(lua_State *l, const char *at)
{
    const char *end = strstr(at, "\r\n");
    long long n = strtoll(at + 1, NULL, 10);
    switch (*at) {
    case ':':
        lua_pushnumber(l, (lua_Number)n);
        break;
    case '$':
        return push_bulk(l, end + 2, n);
    case '*':
        return push_array(l, end + 2, n);
    case '+':
        push_line(l, "ok", at + 1, end);
        break;
    default:
        push_line(l, "err", at + 1, end);
        break;
    }
    return end + 2;
}

/* --- values into replies -------------------------------------------------- */

static bool add_line(lua_State *l, const char *name, char mark, text *out)
{
    lua_getfield(l, -1, name);
    bool found = lua_type(l, -1) == LUA_TSTRING;
    if (found)
        text_print(out, "%c%s\r\n", mark, lua_tostring(l, -1));
    lua_pop(l, 1);
    return found;
}

static void add_value(lua_State *l, text *out);

static void add_table(lua_State *l, text *out)
{
    int n = 0;
    if (add_line(l, "err", '-', out) || add_line(l, "ok", '+', out))
        return;
    for (;; n++) {
        lua_rawgeti(l, -1, n + 1);
        bool end = lua_isnil(l, -1);
        lua_pop(l, 1);
        if (end)
            break;
    }
    text_print(out, "*%d\r\n", n);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(l, -1, i);
        add_value(l, out);
        lua_pop(l, 1);
    }
}

/* The one on top of the stack, which stays there. */
static void add_value(lua_State *l, text *out)
{
    size_t len;
    const char *bytes;
    switch (lua_type(l, -1)) {
    case LUA_TSTRING:
        bytes = lua_tolstring(l, -1, &len);
        text_bulk(out, bytes, len);
        break;
    case LUA_TNUMBER:
        text_number(out, (long long)lua_tonumber(l, -1));
        break;
    case LUA_TTABLE:
        add_table(l, out);
        break;
    case LUA_TBOOLEAN:
        text_print(out, lua_toboolean(l, -1) ? ":1\r\n" : "$-1\r\n");
        break;
    default:
        text_print(out, "$-1\r\n");
        break;
    }
}

/* --- what a script may call ----------------------------------------------- */

static text answer; /* of the latest command */

static void execute(lua_State *l)
{
    word argv[WORDS_MAX];
    size_t n = (size_t)lua_gettop(l);
    if (n == 0 || n > WORDS_MAX)
        luaL_error(l, "a command of %d words", (int)n);
    for (size_t i = 0; i < n; i++) {
        int at = (int)i + 1;
        if (lua_type(l, at) != LUA_TSTRING && lua_type(l, at) != LUA_TNUMBER)
            luaL_error(l, "a command's word is no string or number");
        if (lua_type(l, at) == LUA_TNUMBER) {
            lua_pushfstring(l, "%s", lua_tostring(l, at));
            lua_replace(l, at);
        }
        argv[i].at = lua_tolstring(l, at, &argv[i].len);
    }
    answer.len = 0;
    store_command(current, argv, n, &answer);
    text_add(&answer, "", 1);
    push_reply(l, answer.at);
}

static int protected_call(lua_State *l)
{
    execute(l);
    return 1;
}

static int plain_call(lua_State *l)
{
    execute(l);
    return *answer.at == '-' ? lua_error(l) : 1;
}

static int error_reply(lua_State *l)
{
    const char *said = luaL_checkstring(l, 1);
    push_line(l, "err", said, said + strlen(said));
    return 1;
}

static int no_global(lua_State *l)
{
    return luaL_error(l, "a script uses a global variable: %s",
                      lua_tostring(l, 2));
}

/* --- scripts -------------------------------------------------------------- */

static void start(void)
{
    static const luaL_Reg functions[] = {{"call", plain_call},
                                         {"pcall", protected_call},
                                         {"error_reply", error_reply},
                                         {NULL, NULL}};
    lua = luaL_newstate();
    if (!lua)
        die("Lua does not start");
    luaL_openlibs(lua);
    luaL_register(lua, "redis", functions);
    lua_pushnumber(lua, 0x0007000f);
    lua_setfield(lua, -2, "REDIS_VERSION_NUM");
    lua_newtable(lua);
    lua_setglobal(lua, "KEYS");
    lua_newtable(lua);
    lua_setglobal(lua, "ARGV");
    lua_createtable(lua, 0, 2);
    lua_pushcfunction(lua, no_global);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, no_global);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, LUA_GLOBALSINDEX);
    lua_settop(lua, 0);
}

static void set_table(const char *name, const word *from, size_t n)
{
    lua_createtable(lua, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushlstring(lua, from[i].at, from[i].len);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_setglobal(lua, name);
}

/* An error that the script did not catch. A table: a command's, as it is. */
static void add_failure(text *out)
{
    if (lua_istable(lua, -1) && add_line(lua, "err", '-', out))
        return;
    text_print(out, "-ERR %s\r\n", lua_tostring(lua, -1));
}

static void run(store *s, const word *argv, size_t n, size_t keys, text *out)
{
    set_table("KEYS", argv, keys);
    set_table("ARGV", argv + keys, n - keys);
    current = s;
    s->in_script = true;
    s->wrote = false;
    if (lua_pcall(lua, 0, 1, 0) != 0)
        add_failure(out);
    else
        add_value(lua, out);
    s->in_script = s->wrote = false;
    lua_settop(lua, 0);
}

static bool compile(const word *body)
{
    if (!lua)
        start();
    return luaL_loadbuffer(lua, body->at, body->len, "@user_script") == 0;
}

void script_run(store *s, const word *body, const word *argv, size_t n,
                size_t keys, text *out)
{
    if (compile(body)) {
        run(s, argv, n, keys, out);
        return;
    }
    text_print(out, "-ERR Error compiling script %s\r\n",
               lua_tostring(lua, -1));
    lua_settop(lua, 0);
}

int script_by_sha1(const word *sha1)
{
    for (int i = 0; i < RL_SCRIPT_COUNT; i++)
        if (word_is(sha1, rl_scripts[i].sha1))
            return i;
    return -1;
}

int script_by_body(const word *body)
{
    for (int i = 0; i < RL_SCRIPT_COUNT; i++)
        if (body->len == rl_scripts[i].len &&
            memcmp(body->at, rl_scripts[i].body, body->len) == 0)
            return i;
    return -1;
}

void script_call(store *s, int script, const word *argv, size_t n, size_t keys,
                 text *out)
{
    word body = {rl_scripts[script].body, rl_scripts[script].len};
    if (!compiled[script]) {
        if (!compile(&body))
            die("%s: %s", rl_scripts[script].name, lua_tostring(lua, -1));
        compiled[script] = luaL_ref(lua, LUA_REGISTRYINDEX);
    }
    lua_rawgeti(lua, LUA_REGISTRYINDEX, compiled[script]);
    run(s, argv, n, keys, out);
}

void script_end(void)
{
    if (lua)
        lua_close(lua);
    lua = NULL;
    memset(compiled, 0, sizeof compiled);
    text_free(&answer);
}
