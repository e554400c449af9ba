#!/bin/sh
# Prints what one warm acquire of a free lock goes through on its thread: source
# files entered, calls whose callee is in another file than its caller, mutexes
# taken, and readings of the clock. A function counts where it is defined; inline ones of headers,
# and returns, do not. With -v, also which files call which, and how often.
#
#   SOURCE  another tree of the library, to be compared with this one
set -eu

verbose=${1:-}
here=$(cd "$(dirname "$0")" && pwd)
source=${SOURCE:-$here/../..}
dir=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 143' HUP INT TERM

{
    cmake -S "$source" -B "$dir/build" -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_C_FLAGS="-g -O0 -finstrument-functions \
-finstrument-functions-exclude-file-list=.h"
    cmake --build "$dir/build" -j "$(nproc)" --target rlock_static
    # shellcheck disable=SC2046
    ${CC:-cc} -g -D_GNU_SOURCE -I "$source/include" -I "$here" \
        -o "$dir/crossings" "$here/crossings.c" "$here/bench.c" \
        "$dir/build/librlock.a" -no-pie \
        -Wl,--wrap=pthread_mutex_lock -Wl,--wrap=clock_gettime \
        $(pkg-config --cflags --libs hiredis uuid) -pthread
} >"$dir/log" 2>&1 || {
    cat "$dir/log" >&2
    exit 1
}

"$here/../with-redis.sh" "$dir/crossings" >"$dir/events"
start=$(nm "$dir/crossings" | sed -n 's/^\([0-9a-f]*\) . __executable_start$/\1/p')
awk '/^E/ { print $2; print $3 }' "$dir/events" | sort -u >"$dir/offsets"
while read -r offset; do
    printf '%x\n' $((0x$start + 0x$offset))
done <"$dir/offsets" | addr2line -e "$dir/crossings" |
    sed 's/:.*//; s,.*/src/,,' | paste -d ' ' "$dir/offsets" - >"$dir/files"

awk -v verbose="$verbose" '
    NR == FNR { file[$1] = $2; next }
    $1 == "M" { mutexes++; next }
    $1 == "C" { readings++; next }
    {
        calls++
        seen[file[$2]] = 1
        if (file[$2] != file[$3]) {
            crossings++
            way[file[$3] " -> " file[$2]]++
        }
    }
    END {
        for (f in seen)
            files++
        what = "an acquire of a free lock:"
        row(what " source files entered", 16, files)
        row("- calls from one file to another, of " calls " calls", 60,
            crossings)
        row("- mutexes taken", 5, mutexes)
        printf "| - readings of the clock | | %d | |\n", readings
        if (verbose == "-v")
            for (w in way)
                print way[w], w | "sort -rn >&2"
    }
    function row(what, limit, n) {
        printf "| %s | %d | %d%s | |\n", what, limit, n,
            (n > limit ? " (missed)" : "")
    }' "$dir/files" "$dir/events"
