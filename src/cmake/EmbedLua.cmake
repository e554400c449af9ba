# Turns the files of ${SOURCE} into what C knows of them. A script is a file with
# a line "-- Reply type: integer", or array, or string, or "string or array". A
# guard has a line "-- Guard: ..." instead, and is put before a script of the
# program: without comments and on one line, so that the lines of that keep their
# numbers. All others are there to be included: a line that is, but for blanks
# before it, "-- include: other.lua" stands for that file. Written are, below
# ${OUTPUT},
#
#   rlock_scripts.h    enum rl_script_id: RL_SCRIPT_ and the script's path, and
#                      enum rl_guard_id: RL_GUARD_ and the guard's folder
#   scripts.c          rl_scripts, the table of them, with bodies and SHA1s, and
#                      rl_guards
#   lua/...            scripts and guards whole, as they are sent; nothing else
#                      if WITHOUT_C is ON
#
# Bytes and no string literals: C promises only 4095 characters for those.
cmake_minimum_required(VERSION 3.18)

# Sets body to the file, with everything that it includes.
function(read_whole file)
    file(READ "${SOURCE}/${file}" body)
    while("\n${body}" MATCHES "\n *-- include: ([a-z_/]+\\.lua)\n")
        file(READ "${SOURCE}/${CMAKE_MATCH_1}" included)
        string(REPLACE "${CMAKE_MATCH_0}" "\n${included}" body "\n${body}")
        string(SUBSTRING "${body}" 1 -1 body)
    endwhile()
    set(body "${body}" PARENT_SCOPE)
endfunction()

# Appends the text as an array of that name.
function(add_array array text)
    if(WITHOUT_C)
        return()
    endif()
    string(HEX "${text}" bytes)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REPLACE "0x0a," "0x0a,\n    " bytes "${bytes}")
    set(arrays "${arrays}static const unsigned char ${array}[] = {
    ${bytes}0};\n\n" PARENT_SCOPE)
endfunction()

set(ids "")
set(arrays "")
set(rows "")
set(guard_ids "")
set(guard_rows "")
file(GLOB_RECURSE files RELATIVE "${SOURCE}" "${SOURCE}/*.lua")
list(SORT files)
file(REMOVE_RECURSE "${OUTPUT}/lua")
foreach(file IN LISTS files)
    read_whole(${file})
    string(REGEX REPLACE "\\.lua$" "" name "${file}")
    string(REPLACE "/" "_" array "${name}")
    if("\n${body}" MATCHES "\n-- Guard: ")
        string(REGEX REPLACE "\n *--[^\n]*" "" body "\n${body}")
        string(REGEX REPLACE "\n *" " " body "${body}")
        string(STRIP "${body}" body)
        set(body "${body}; ")
        file(WRITE "${OUTPUT}/lua/${file}" "${body}")
        add_array(${array} "${body}")
        string(REGEX REPLACE "_?guard_?" "" id "${array}")
        string(TOUPPER "RL_GUARD_${id}" id)
        string(LENGTH "${body}" length)
        string(APPEND guard_ids "    ${id},\n")
        string(APPEND guard_rows
            "    [${id}] = {(const char *)${array}, ${length}},\n")
        continue()
    endif()
    if(NOT "\n${body}" MATCHES "\n-- Reply type: ([a-z ]+)\n")
        continue()
    endif()
    string(REPLACE " or " ") | RL_REPLY_BIT(REDIS_REPLY_" replies
        "RL_REPLY_BIT(REDIS_REPLY_${CMAKE_MATCH_1})")
    string(TOUPPER "${replies}" replies)
    file(WRITE "${OUTPUT}/lua/${file}" "${body}")

    string(TOUPPER "RL_SCRIPT_${array}" id)
    string(SHA1 sha1 "${body}")
    string(LENGTH "${body}" length)
    add_array(${array} "${body}")
    string(APPEND ids "    ${id},\n")
    string(APPEND rows
        "    [${id}] = {\"${name}\",\n"
        "        \"${sha1}\",\n"
        "        (const char *)${array}, ${length}, ${replies}},\n")
endforeach()
if(WITHOUT_C)
    return()
endif()

file(WRITE "${OUTPUT}/rlock_scripts.h"
    "#ifndef RLOCK_SCRIPTS_H\n#define RLOCK_SCRIPTS_H\n\n"
    "typedef enum rl_script_id {\n${ids}    RL_SCRIPT_COUNT\n} rl_script_id;\n\n"
    "typedef enum rl_guard_id {\n${guard_ids}    RL_GUARD_COUNT\n"
    "} rl_guard_id;\n\n"
    "#endif\n")
file(WRITE "${OUTPUT}/scripts.c"
    "#include \"wire/script.h\"\n\n${arrays}"
    "const rl_script rl_scripts[RL_SCRIPT_COUNT] = {\n${rows}};\n\n"
    "const rl_guard rl_guards[RL_GUARD_COUNT] = {\n${guard_rows}};\n")
