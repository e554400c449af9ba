#!/usr/bin/env bash
# sentinel.sh: a master is killed under a held lock, and the lock is still held.
#
# Starts a master, a replica and three Sentinels of its own, and the program
# sentinel, which takes a lock. Kills the master: the Sentinels promote the
# replica, the program is told, goes on holding the lock there, and releases it.
# Ends with status 0 only if all that was seen.
#
#   BUILD_DIR   a build to use as it is; without it, installs what is missing
#               and builds into build/
set -eu -o pipefail

cd "$(dirname "$0")/.."
exec </dev/null

pids=() program=''
dir=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
finish() {
    local pid
    for pid in $program "${pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' HUP INT TERM

die() {
    printf 'sentinel.sh: %s\n' "$1" >&2
    exit 1
}
# until_seen WHAT COMMAND [ARGUMENT]...: until the command succeeds
until_seen() {
    local what=$1 limit=$((SECONDS + 30))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < limit)) || die "not seen: $what"
        sleep 0.05
    done
}

if [ -z "${BUILD_DIR-}" ]; then
    BUILD_DIR=build
    tests/deps.sh demo
    cmake -S . -B build -DRLOCK_BUILD_EXAMPLES=ON >/dev/null
    cmake --build build -j "$(nproc)" --target example_sentinel >/dev/null
fi

# A port that nobody listens on; should another program take it meanwhile, what
# we start there ends at once, and we with it.
free_port() {
    local port
    while :; do
        port=$((10000 + RANDOM % 20000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}
# Should this script be killed, the kernel stops the servers.
start() {
    setpriv --pdeathsig KILL redis-server "$@" >>"$dir/log" 2>&1 &
    pids+=($!)
}
answers() {
    redis-cli -p "$1" ping
}
old=$(free_port)
new=$(free_port)
mkdir "$dir/old" "$dir/new"
start --port "$old" --bind 127.0.0.1 --save '' --dir "$dir/old" \
    --repl-diskless-sync-delay 0
master=${pids[0]}
until_seen "the master" answers "$old"
start --port "$new" --bind 127.0.0.1 --save '' --dir "$dir/new" \
    --replicaof 127.0.0.1 "$old"
until_seen "the replica" answers "$new"

uri=
for i in 1 2 3; do
    port=$(free_port)
    mkdir "$dir/$i"
    cat >"$dir/$i/conf" <<END
port $port
bind 127.0.0.1
dir $dir/$i
sentinel monitor main 127.0.0.1 $old 2
sentinel down-after-milliseconds main 500
sentinel failover-timeout main 5000
END
    start "$dir/$i/conf" --sentinel
    until_seen "Sentinel $i" answers "$port"
    uri=$uri${uri:+,}127.0.0.1:$port
done
all_know_each_other() {
    redis-cli -p "$port" sentinel master main | tr '\n' ' ' |
        grep -q ' num-slaves 1 num-other-sentinels 2 '
}
until_seen "all of them" all_know_each_other

"$BUILD_DIR/examples/sentinel" "redis-sentinel://$uri/main" >"$dir/out" 2>&1 &
program=$!
until_seen "the lock" grep -q '^step 3:' "$dir/out"
replicated() {
    [ "$(redis-cli -p "$new" exists example:sentinel)" = 1 ]
}
until_seen "the lock at the replica" replicated
echo "---- the master is killed" >>"$dir/out"
kill -KILL "$master"
status=0
wait "$program" || status=$?
program=''
cat "$dir/out"
((status == 0)) || die "the program ended with status $status"
grep -q "^failover: 127.0.0.1:$new instead of 127.0.0.1:$old\$" "$dir/out" ||
    die "no failover was told"
