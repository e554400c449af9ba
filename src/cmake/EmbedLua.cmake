# Writes ${OUTPUT}, the table of scripts: for each of ${NAMES} the file
# ${SOURCE}/name.lua, byte for byte, and its SHA1. A line that is exactly
# "-- include: other.lua" stands for that file.
#
# Bytes and no string literals: C promises only 4095 characters for those.
cmake_minimum_required(VERSION 3.18)

set(arrays "")
set(rows "")
foreach(name IN LISTS NAMES)
    file(READ "${SOURCE}/${name}.lua" body)
    while("\n${body}" MATCHES "\n-- include: ([a-z_/]+\\.lua)\n")
        file(READ "${SOURCE}/${CMAKE_MATCH_1}" included)
        string(REPLACE "${CMAKE_MATCH_0}" "\n${included}" body "\n${body}")
        string(SUBSTRING "${body}" 1 -1 body)
    endwhile()

    string(SHA1 sha1 "${body}")
    string(LENGTH "${body}" length)
    string(HEX "${body}" bytes)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REPLACE "0x0a," "0x0a,\n    " bytes "${bytes}")
    string(REPLACE "/" "_" array "${name}")
    string(TOUPPER "${array}" constant)
    string(APPEND arrays
        "static const unsigned char ${array}[] = {\n    ${bytes}0};\n\n")
    string(APPEND rows
        "    [RL_SCRIPT_${constant}] = {\"${name}\",\n"
        "        \"${sha1}\",\n"
        "        (const char *)${array}, ${length}},\n")
endforeach()

file(WRITE "${OUTPUT}"
    "#include \"wire/script.h\"\n\n${arrays}"
    "const rl_script rl_scripts[RL_SCRIPT_COUNT] = {\n${rows}};\n")
