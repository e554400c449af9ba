/*
 * The scripts that tests of scripts run: the library's, or those of a folder that
 * RLOCK_TEST_LUA names, as the build leaves them in generated/lua (dropped.sh).
 */
#ifndef TEST_SUPPORT_SCRIPT_TEXT_H
#define TEST_SUPPORT_SCRIPT_TEXT_H

#include "wire/script.h"

/* By the path of its file in lua/, without ".lua"; NULL: there is none. Valid
   until the next. */
const char *script_text(const char *path);

/* The same script as a server before Redis 7.0 runs it, which tells no number of its
   version (lua/gt.lua). Valid until the next. */
const char *script_before_7(const char *text);

/* What EVALSHA calls it, once server_load_scripts() has brought it. */
const char *script_sha(rl_script_id script);

#endif
