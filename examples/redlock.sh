#!/usr/bin/env bash
# redlock.sh: a lock on five servers outlives two of them, and not three.
#
# Starts five Redis servers of its own and the program redlock, which takes a
# lock on them. Kills two servers: the program keeps the lock, and the watchdog
# goes on renewing it. Kills a third: the program is told, at the latest when its
# lease has run out. Ends with status 0 only if all that was seen.
#
#   BUILD_DIR   a build to use as it is; without it, installs what is missing
#               and builds into build/
set -eu -o pipefail

cd "$(dirname "$0")/.."
exec </dev/null

lease_ms=1500 # as in redlock.c
margin_ms=3000 # a busy machine stands still for a second, and more, at times
server=() program='' shown=''
dir=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")

finish() {
    local pid
    for pid in $program "${server[@]}" $shown; do
        kill -KILL "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' HUP INT TERM

die() {
    printf 'redlock.sh: %s\n' "$1" >&2
    exit 1
}
now_ms() {
    date +%s%3N
}
# until_seen WHAT COMMAND [ARGUMENT]...: until the command succeeds
until_seen() {
    local what=$1 limit=$((SECONDS + 30))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < limit)) || die "not seen: $what"
        sleep 0.02
    done
}
# Has the program printed it?
printed() {
    grep -q "$1" "$dir/out"
}
last_step() {
    sed -n 's/^step \([0-9]*\):.*/\1/p' "$dir/out" | tail -n 1
}
reached() {
    [ "$(last_step)" -ge "$1" ]
}
kill_server() {
    kill -KILL "${server[$1]}"
    wait "${server[$1]}" 2>/dev/null || :
    unset "server[$1]"
}

if [ -z "${BUILD_DIR-}" ]; then
    BUILD_DIR=build
    tests/deps.sh demo
    cmake -S . -B build -DRLOCK_BUILD_EXAMPLES=ON >/dev/null
    cmake --build build -j "$(nproc)" --target example_redlock >/dev/null
fi

uris=()
for i in 0 1 2 3 4; do
    mkdir "$dir/$i"
    # Should this script be killed, the kernel stops the server.
    setpriv --pdeathsig KILL redis-server --port 0 --save '' --appendonly no \
        --dir "$dir/$i" --unixsocket "$dir/$i/sock" >"$dir/$i/log" 2>&1 &
    server[i]=$!
    uris[i]=unix://$dir/$i/sock
done
for i in 0 1 2 3 4; do
    until_seen "server $i" redis-cli -s "$dir/$i/sock" ping
done

mkfifo "$dir/pipe"
start_program() {
    : >"$dir/out"
    # Through tee, which shows each line before the file has it.
    tee "$dir/out" <"$dir/pipe" &
    shown=$!
    setpriv --pdeathsig KILL "$BUILD_DIR/examples/redlock" "${uris[@]}" \
        >"$dir/pipe" 2>&1 &
    program=$!
}
end_program() {
    local status=0
    wait "$program" 2>/dev/null || status=$?
    wait "$shown"
    program='' shown=''
    return "$status"
}
# The acquire passes over a server that does not answer in time, as may be on a
# busy machine; that one then has no part in this hold.
on_all_five() {
    printed '^step 3:.*servers:\( \+[0-9]\+\)\{5\}$'
}
for tries in 4 3 2 1 0; do
    start_program
    until_seen "a step under the lock" printed '^step 3:'
    on_all_five && break
    ((tries > 0)) || die "no acquire has reached all servers in time"
    echo "---- not all servers have answered in time; once more"
    kill -KILL "$program"
    end_program || :
done

echo "---- two of the five servers are killed"
kill_server 1
kill_server 3
step=$(last_step)
# A step takes 200 ms at least: nobody holds on for so long by the lease alone.
until_seen "a lease more of work" reached $((step + 2 * lease_ms / 200))
printed '^LOST' && die "two servers of five were enough to lose the lock"
printed '\( *[0-9]\+\) \+-1 \+[0-9]\+ \+-1 \+[0-9]\+$' ||
    die "the program does not see which servers are gone"
echo "---- two leases later it is still held; a third server is killed"
kill_server 4
killed=$(now_ms)
until_seen "the loss" printed '^LOST'
told=$(now_ms)

status=0
end_program || status=$?
((status == 3)) || die "the program ended with status $status"
((told - killed <= lease_ms + margin_ms)) ||
    die "the program was told only after $((told - killed)) ms"
echo "---- told $((told - killed)) ms after that; the lease is $lease_ms ms"
