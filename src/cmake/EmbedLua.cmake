# Turns the files of ${SOURCE} into what C knows of them. A script is a file with
# a line "-- Reply type: integer", or array, or string, or "string or array"; all
# others are there to be included: a line that is, but for blanks before it,
# "-- include: other.lua" stands for that file. Written are, below ${OUTPUT},
#
#   rlock_scripts.h    enum rl_script_id: RL_SCRIPT_ and the script's path
#   scripts.c          rl_scripts, the table of them, with bodies and SHA1s
#   lua/...            the scripts whole, as they are sent
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

set(ids "")
set(arrays "")
set(rows "")
file(GLOB_RECURSE files RELATIVE "${SOURCE}" "${SOURCE}/*.lua")
list(SORT files)
file(REMOVE_RECURSE "${OUTPUT}/lua")
foreach(file IN LISTS files)
    read_whole(${file})
    if(NOT "\n${body}" MATCHES "\n-- Reply type: ([a-z ]+)\n")
        continue()
    endif()
    string(REPLACE " or " ") | RL_REPLY_BIT(REDIS_REPLY_" replies
        "RL_REPLY_BIT(REDIS_REPLY_${CMAKE_MATCH_1})")
    string(TOUPPER "${replies}" replies)
    file(WRITE "${OUTPUT}/lua/${file}" "${body}")

    string(REGEX REPLACE "\\.lua$" "" name "${file}")
    string(REPLACE "/" "_" array "${name}")
    string(TOUPPER "RL_SCRIPT_${array}" id)
    string(SHA1 sha1 "${body}")
    string(LENGTH "${body}" length)
    string(HEX "${body}" bytes)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REPLACE "0x0a," "0x0a,\n    " bytes "${bytes}")
    string(APPEND ids "    ${id},\n")
    string(APPEND arrays
        "static const unsigned char ${array}[] = {\n    ${bytes}0};\n\n")
    string(APPEND rows
        "    [${id}] = {\"${name}\",\n"
        "        \"${sha1}\",\n"
        "        (const char *)${array}, ${length}, ${replies}},\n")
endforeach()

file(WRITE "${OUTPUT}/rlock_scripts.h"
    "#ifndef RLOCK_SCRIPTS_H\n#define RLOCK_SCRIPTS_H\n\n"
    "typedef enum rl_script_id {\n${ids}    RL_SCRIPT_COUNT\n} rl_script_id;\n\n"
    "#endif\n")
file(WRITE "${OUTPUT}/scripts.c"
    "#include \"wire/script.h\"\n\n${arrays}"
    "const rl_script rl_scripts[RL_SCRIPT_COUNT] = {\n${rows}};\n")
