#!/bin/sh
# abi.sh LIBRARY HEADERS
# abi.sh --dump LIBRARY HEADERS
#
# Compares what the shared library gives to programs with what the last version
# gave, whose dump is the newest file in abi/, and judges whether names and
# numbers say so: what a program compiled against the last version cannot use
# needs another SONAME, what is new a later version. Then the judge itself is
# tried: told that neither has changed, it has to complain of what did.
#
# --dump prints a library's dump; for abi/, when a version is released.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

dump() {
    abidw --drop-private-types --exported-interfaces-only --no-elf-needed \
        --no-corpus-path --no-comp-dir-path --no-show-locs --hd "$2" "$1"
}

if [ "${1-}" = --dump ]; then
    dump "$2" "$3"
    exit
fi
library=$1 headers=$2
last=$(find "$here/abi" -name '*.abi' | sort -V | tail -n 1)
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM
dump "$library" "$headers" >"$work/now.abi"

soname_of() {
    sed -n "1s/.*soname='\([^']*\)'.*/\1/p" "$1"
}
# A library knows its version by the name of its file.
version_now() {
    realpath "$library" | sed 's/.*\.so\.//'
}

# is_later A B: is A after B?
is_later() {
    [ "$1" != "$2" ] &&
        [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1)" = "$1" ]
}

# changes [OPTION]...: is there anything but what the options leave out?
changes() {
    ! abidiff --ignore-soname "$@" "$last" "$work/now.abi" >"$work/says"
}

# judge SONAME-BEFORE VERSION-BEFORE SONAME-NOW VERSION-NOW
judge() {
    if changes --no-added-syms; then
        [ "$1" != "$3" ] ||
            echo "not compatible with $2, and both are $1:"
    elif changes; then
        is_later "$4" "$2" || echo "more than $2 has, and not later:"
    fi
}

complaint=$(judge "$(soname_of "$last")" "$(basename "$last" .abi)" \
    "$(soname_of "$work/now.abi")" "$(version_now)")
if [ -n "$complaint" ]; then
    echo "$complaint"
    cat "$work/says"
    exit 1
fi
if changes; then
    complaint=$(judge same 1.0.0 same 1.0.0)
    if [ -z "$complaint" ]; then
        echo "the judge did not notice:"
        cat "$work/says"
        exit 1
    fi
fi
