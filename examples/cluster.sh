#!/usr/bin/env bash
# cluster.sh: a master of a cluster is killed under a held lock, and the lock is
# still held.
#
# Starts six servers of its own, makes a Redis Cluster of them, three masters
# with a replica each, and starts the program cluster, which takes a lock twice.
# Kills the master that has it: the cluster promotes the replica, the program is
# told, renews the lock there and goes on holding it, another client is refused
# all the time, and the lock is released. Ends with status 0 only if all that was
# seen.
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
    printf 'cluster.sh: %s\n' "$1" >&2
    [ ! -s "$dir/out" ] || cat "$dir/out" >&2
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
    cmake --build build -j "$(nproc)" --target example_cluster >/dev/null
fi

# A port that nobody listens on, nor on the one of the cluster's bus, 10000
# higher; should another program take one meanwhile, what we start there ends at
# once, and we with it.
taken() {
    (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}
free_port() {
    local port
    while :; do
        port=$((10000 + RANDOM % 10000))
        taken "$port" || taken $((port + 10000)) || break
    done
    echo "$port"
}
answers() {
    redis-cli -p "$1" ping
}
declare -A pid_of
nodes=()
for i in 1 2 3 4 5 6; do
    port=$(free_port)
    mkdir "$dir/$i"
    # Should this script be killed, the kernel stops the servers.
    setpriv --pdeathsig KILL redis-server --port "$port" --bind 127.0.0.1 \
        --save '' --appendonly no --dir "$dir/$i" --cluster-enabled yes \
        --cluster-node-timeout 1000 --repl-diskless-sync-delay 0 \
        >>"$dir/log" 2>&1 &
    pids+=($!)
    pid_of[$port]=$!
    until_seen "server $i" answers "$port"
    nodes+=("127.0.0.1:$port")
done
redis-cli --cluster create "${nodes[@]}" --cluster-replicas 1 --cluster-yes \
    >"$dir/create" 2>&1 || die "no cluster: $(tail -n 1 "$dir/create")"
# Each node knows of all slots, and each master has a replica that follows it.
is_ready() {
    redis-cli -p "$1" cluster info | grep -q '^cluster_state:ok' || return 1
    [ "$(redis-cli -p "$1" role | head -n 1)" != master ] ||
        [ "$(redis-cli -p "$1" wait 1 100)" -ge 1 ]
}
for port in "${!pid_of[@]}"; do
    until_seen "the cluster" is_ready "$port"
done

# Some nodes are enough: they name the others.
uri=redis-cluster://${nodes[0]},${nodes[1]},${nodes[5]}
"$BUILD_DIR/examples/cluster" "$uri" >"$dir/out" 2>&1 &
program=$!
seen() {
    grep -q "$1" "$dir/out"
}
goes_on() {
    seen "$1" || ! kill -0 "$program"
}
until_seen "the lock" goes_on '^step 3:'
seen '^step 3:' || die "the program has ended"

# Only the master of the slot answers, the others send elsewhere.
has_lock() {
    [ "$(redis-cli -p "$1" exists example:cluster)" = 1 ]
}
old=''
for port in "${!pid_of[@]}"; do
    has_lock "$port" && old=$port
done
[ -n "$old" ] || die "no master has the lock"
id=$(redis-cli -p "$old" cluster myid)
new=$(redis-cli -p "$old" cluster replicas "$id" |
    sed -n 's/^[^ ]* 127\.0\.0\.1:\([0-9]*\)@.*/\1/p')
replicated() {
    printf 'readonly\nhvals example:cluster\n' | redis-cli -p "$new" |
        grep -qx 2
}
until_seen "both levels at the replica $new" replicated
echo "---- the master is killed" >>"$dir/out"
kill -KILL "${pid_of[$old]}"
until_seen "the failover" goes_on '^failover:'
until_seen "the renewal" goes_on '^renewed'
has_lock "$new" || die "the new master does not have the lock"
status=0
wait "$program" || status=$?
program=''
((status == 0)) || die "the program ended with status $status"
seen "^failover: .*127.0.0.1:$new instead of 127.0.0.1:$old\$" ||
    die "no failover was told"
seen '^renewed at the new master$' || die "no renewal was told"
sed '/^renewed/,$!d' "$dir/out" |
    grep -qx 'another client: held by another owner' ||
    die "nobody else was refused there"
cat "$dir/out"
