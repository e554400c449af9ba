#!/bin/sh
# lines.sh [DIRECTORY]...
#
# No file has more than 600 lines, no function more than 40, from its first line
# to its brace. Lists those that do, and fails; src if no directory is given.
set -eu

cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- src
find "$@" -name '*.[ch]' | sort | xargs awk -v most_of_file=600 -v most=40 '
    FNR == 1 { end_file(); file = FILENAME; first = 0 }
    { lines = FNR }
    # Formatted code has the beginning of what is outside in the first column.
    /^[a-zA-Z_]/ && !first { first = FNR; name = $0 }
    /^[a-zA-Z_].*;$|^#|^$|^ \*\/|^};/ { first = 0 }
    /^\{/ { begun = first }
    /^\}/ && begun {
        n = FNR - begun + 1
        if (n > longest) { longest = n; which = file ":" begun }
        if (n > most) bad(file ":" begun ": " n " lines: " name)
        begun = first = 0
    }
    function bad(what) { print what; failed = 1 }
    function end_file() {
        if (lines > most_of_file) bad(file ": " lines " lines")
        if (lines > largest) { largest = lines; where = file }
        lines = 0
    }
    END {
        end_file()
        printf "longest file %s: %d; longest function %s: %d\n", where,
            largest, which, longest
        exit failed
    }'
