#!/usr/bin/env bash
# probes.sh notes LIBRARY
# probes.sh traced LIBRARY COMMAND
#
# The probes that a library was built with (src/doc/probes.md).
#
#   notes   its ELF notes name those of the manual, with as many arguments, and where
#           each is there is a nop
#   traced  bpftrace sees COMMAND acquire, renew, release and lose locks, with these
#           arguments; and examples/waits.bt says for how long
# shellcheck disable=SC2016
set -eu -o pipefail

LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
library=$2
command=${3-}
tracer=
cleanup() {
    [ -z "$tracer" ] || kill "$tracer" 2>/dev/null || :
    wait
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 143' HUP INT TERM

skip() {
    echo "$1"
    exit 77
}
die() {
    echo "probes.sh: $1" >&2
    for file in "$work"/out "$work"/err; do
        [ ! -e "$file" ] || cat "$file" >&2
    done
    exit 1
}

# --- the notes --------------------------------------------------------------

# "NAME ADDRESS ARGUMENT...", a probe a line
found() {
    readelf -n "$library" | awk '
        /^ *Provider: / { provider = $2 }
        /^ *Name: / { name = $2 }
        /^ *Location: / { at = $2; sub(/,$/, "", at) }
        /^ *Arguments: / && provider == "rlock" { $1 = ""; print name, at $0 }'
}
# "NAME NUMBER" of what the manual has
told() {
    sed -n 's/^| `\([a-z_]*\)` | \(.*\) | .*/\1,\2/p' src/doc/probes.md |
        awk -F, '{ print $1, NF - 1 }' | sort
}
# name, length: an address of eight bytes, and an unsigned number
is_name() {
    awk '$3 !~ /^8@/ || $4 !~ /^[28]@/ { print; bad = 1 } END { exit bad }' "$1"
}
# The instruction at an address.
instruction() {
    objdump -d --start-address="$1" --stop-address="$(($1 + 4))" "$library" |
        awk -F'\t' '/^ *[0-9a-f]+:/ { print $3; exit }' | tr -d ' '
}
notes() {
    found >"$work/found"
    told >"$work/told"
    [ "$(wc -l <"$work/told")" -eq 7 ] || die "what the manual has is not read"
    awk '{ print $1, NF - 2 }' "$work/found" | sort -u | diff "$work/told" - ||
        die "the manual has others than the library"
    is_name "$work/found" || die "these do not begin with a name and its length"
    while read -r name at _; do
        [ "$(instruction "$at")" = nop ] || die "$name at $at is no nop"
    done <"$work/found"
    cat "$work/found"
}

# --- traced -----------------------------------------------------------------

# A probe with all its arguments, as a line of text.
line() {
    printf 'usdt:%s:rlock:%s { printf("%s %%s%s\\n", str(arg0, arg1)%s); }\n' \
        "$library" "$1" "$1" "$2" "$3"
}
script() {
    line acquire_begin ' %lld' ', arg2'
    line acquire_end ' %d %lld' ', arg2, arg3'
    line grant ' %llu' ', arg2'
    line release ' %llu %lld' ', arg2, arg3'
    line renew ' %d %lld' ', arg2, arg3'
    line lost ' %llu %d %lld' ', arg2, arg3, arg4'
}
# seen LINE: it, a regular expression, was traced. Waits for that, 20 s at most.
seen() {
    tries=200
    until grep -qxE "$1" "$work/out"; do
        tries=$((tries - 1))
        [ $tries != 0 ] || die "not traced: $1"
        kill -0 "$tracer" 2>/dev/null || die "bpftrace has ended"
        sleep 0.1
    done
}
# Begins to trace by that script; a lock is taken again and again until it is seen.
trace() {
    : >"$work/out"
    bpftrace -B line "$@" >"$work/out" 2>"$work/err" &
    tracer=$!
    tries=100
    until grep -q "${awaited:-release warm}" "$work/out"; do
        tries=$((tries - 1))
        [ $tries != 0 ] || die "nothing is traced"
        "$command" run warm true
        kill -0 "$tracer" 2>/dev/null || die "bpftrace does not start"
    done
}
stop() {
    kill -INT "$tracer"
    wait "$tracer" || :
    tracer=
}

sections() {
    script >"$work/lines.bt"
    trace "$work/lines.bt"
    token=$("$command" run job sh -c 'echo $RLOCK_TOKEN')
    seen 'acquire_begin job 0'
    seen 'acquire_end job 0 [0-9]+'
    seen "grant job $token"
    seen "release job $token [0-9]+"
    # Who waits in vain is told so.
    "$command" run busy env -i "$command" -u "$RLOCK_URI" run -w 1 busy true || :
    seen 'acquire_end busy 1 [0-9]+'
    seen 'acquire_begin busy [1-9][0-9]{0,3}' # what is left of it, in ms
    seen 'acquire_end busy 2 [0-9]{4,}'
    losing=$("$command" run -l 3 gone sh -c 'echo $RLOCK_TOKEN
        until grep -q "^renew gone 1" "$0"; do sleep 0.1; done
        redis-cli -s "$1" del gone >/dev/null; exec sleep 60' \
        "$work/out" "${RLOCK_URI#unix://}") || :
    seen 'renew gone 1 [0-9]+'
    seen "lost gone $losing 2 [0-9]+"
    stop
}

# The example, at this library.
example() {
    sed "s|/usr/lib/\*/librlock.so[.0-9]*|$library|" examples/waits.bt >"$work/waits.bt"
    ! grep -q 'usdt:/usr/lib' "$work/waits.bt" || die "waits.bt looks elsewhere"
    awaited='Tracing locks' trace "$work/waits.bt"
    "$command" run -l 3 gone sh -c '
        redis-cli -s "$0" del gone >/dev/null; exec sleep 60' \
        "${RLOCK_URI#unix://}" || :
    seen '[0-9:]+ process [0-9]+: gone is lost, cause 2, after [0-9]+ us'
    "$command" run job true
    "$command" run job env -i "$command" -u "$RLOCK_URI" run -n job true || :
    stop
    for map in '@waited_us\[job\]:' '@held_us\[job\]:' '@in_vain\[job, 1\]: 1'; do
        grep -q "^$map" "$work/out" || die "not shown: $map"
    done
}

traced() {
    command -v bpftrace >/dev/null || skip "there is no bpftrace"
    if ! timeout 20 bpftrace -e "usdt:$library:rlock:grant { } BEGIN { exit(); }" \
        >"$work/may" 2>&1; then
        skip "bpftrace may not trace here: $(tail -n 1 "$work/may")"
    fi
    sections
    example
}

case $1 in
notes)
    [ -n "$(found)" ] || skip "built without <sys/sdt.h>"
    notes
    ;;
traced)
    [ -n "$(found)" ] || skip "built without <sys/sdt.h>"
    if [ $# -gt 3 ]; then # the server is there
        RLOCK_URI=$4
        export RLOCK_URI
        traced
    else
        tests/with-redis.sh tests/probes.sh "$@"
    fi
    ;;
*)
    sed -n '/^# probes.sh/s/^# /usage: /p' "$0" >&2
    exit 2
    ;;
esac
