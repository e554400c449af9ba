#!/bin/sh
# lines.sh [DIRECTORY]...
#
# No file has more than 600 lines, no function more than 40, from its first line
# to its brace. Lists those that do, and fails; src if no directory is given.
#
# In the installed headers no line has more than 80 columns, each outcome of a
# table begins a line, and what is said of it goes on indented. "RLOCK_OK  ..." in
# the middle of a line, or a line of a table that begins with a word, is a table
# that was run together.
#
# The library (src/ without src/cli/), the command (src/cli/) and the installed
# headers, those of C and those of C++, have no more lines and files than stand here.
# A number only falls, unless a commit says why it rose.
set -eu

most_src=43776
most_files=295
most_cli=6982
most_cli_files=44
most_include=2321
most_cxx=1018

cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- src

failed=0
find include -name '*.h' -o -name '*.hpp' | sort | xargs awk '
    length > 80 { bad("more than 80 columns") }
    /^ *\*.*[^ *].*RLOCK_[A-Z0-9_]+  / { bad("an outcome in mid-line") }
    /^ \* RLOCK_[A-Z_]+  / { table = 1 }
    /^ \*( |$|\/)/ { if (length < 4) table = 0 }
    table && /^ \* [^ R]/ { bad("a table run together") }
    function bad(what) { print FILENAME ":" FNR ": " what; failed = 1 }
    END { exit failed }' || failed=1

# budget WHAT NUMBER MOST
budget() {
    echo "$1: $2 of $3"
    [ "$2" -le "$3" ] && [ "$2" -gt 0 ] || failed=1
}

# library [WHAT FIND DOES WITH THEM]: its files
library() {
    find src -name '*.[ch]' ! -path 'src/cli/*' "$@"
}
budget 'lines of src' "$(library -exec cat {} + | wc -l)" $most_src
budget 'files of src' "$(library | wc -l)" $most_files
budget 'lines of src/cli' "$(cat src/cli/*.[ch] | wc -l)" $most_cli
budget 'files of src/cli' "$(find src/cli -name '*.[ch]' | wc -l)" $most_cli_files
budget 'lines of include' "$(cat include/rlock/*.h | wc -l)" $most_include
budget 'lines of include, C++' "$(cat include/rlock/*.hpp | wc -l)" $most_cxx

find "$@" -name '*.[ch]' -o -name '*.[ch]pp' | sort | xargs awk -v most_of_file=600 -v most=40 '
    FNR == 1 { end_file(); file = FILENAME; first = 0 }
    { lines = FNR }
    # Formatted code has the beginning of what is outside in the first column.
    /^[a-zA-Z_]/ && !first { first = FNR; name = $0 }
    /^[a-zA-Z_].*;$|^#|^$|^ \*\/|^};/ { first = 0 }
    /^\};/ { begun = 0 } # a class
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
    }' || failed=1
exit "$failed"
