#!/usr/bin/env bash
# draw.sh [lease] [failover] [handover]
#
# Draws the pictures of the READMEs anew, from real runs of examples/timeline.c with
# servers of their own, by examples/rlock-timeline. What comes out is looked at before
# it is committed: times are those of this machine, on this day.
#
#   BUILD_DIR   a build with the examples; build
#   OUT         where the pictures go; here
#
# Needs what tests/deps.sh pictures installs: socat is the way on which one process of
# the first picture reaches its server, until that is stopped.
set -eu -o pipefail

here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."
out=${OUT:-$here}
timeline=$(realpath "${BUILD_DIR:-build}")/examples/timeline
exec </dev/null

pids=()
dir=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
finish() {
    local pid
    for pid in "${pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' HUP INT TERM

# start COMMAND [ARGUMENT]...; $! is its id
start() {
    setpriv --pdeathsig KILL "$@" >>"$dir/log" 2>&1 &
    pids+=($!)
}
until_seen() {
    local limit=$((SECONDS + 30))
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < limit)) || {
            echo "draw.sh: not seen: $*" >&2
            exit 1
        }
        sleep 0.02
    done
}
free_port() {
    local port
    while :; do
        port=$((10000 + RANDOM % 20000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}
# server PORT [ARGUMENT]...
server() {
    mkdir "$dir/$1"
    start redis-server --port "$1" --bind 127.0.0.1 --save '' --dir "$dir/$1" \
        --repl-diskless-sync-delay 0 "${@:2}"
    until_seen redis-cli -p "$1" ping
}
# note LANE WHAT TEXT: a line of the picture that no program tells
note() {
    printf '%s\t%s\t%s\t\t0\t0\t%s\n' "${EPOCHREALTIME/[.,]/}" "$@" >>"$events"
}
# lane WHO: its process and thread, once it has said so
lane() {
    until_seen grep -q "LANE.*$1\$" "$events"
    awk -F '\t' -v who="$1" '$3 == "LANE" && $7 == who { print $2 }' "$events"
}
# events_seen WHAT NUMBER
seen() {
    (($(grep -c "	$1	" "$events") >= $2))
}
begin() { # FILE TITLE
    events=$dir/$1
    : >"$events"
    note - TITLE "$2"
}

# Two processes, one lock; first A is stopped under it, then B is cut off.
lease() {
    local port far a b looking
    port=$(free_port) far=$(free_port)
    server "$port"
    # Its children do not outlive it: one connection each, all in one group.
    set -m
    socat "TCP-LISTEN:$far,bind=127.0.0.1,reuseaddr,fork" \
        "TCP:127.0.0.1:$port" >>"$dir/log" 2>&1 &
    local way=$!
    disown
    set +m
    until_seen redis-cli -p "$far" ping

    begin lease ''
    "$timeline" -w looking -k 100000 "redis://127.0.0.1:$port" look 10 \
        > >(grep --line-buffered LOOK >>"$events") &
    looking=$!
    pids+=("$looking")
    "$timeline" -w 'process A' -l 1500 "redis://127.0.0.1:$port" \
        lock 500 lock 400 lock 500 unlock 300 unlock 700 unlock 100 \
        lock 3600 unlock 900 lock 900 unlock >>"$events" &
    a=$!
    pids+=("$a")
    until_seen seen ACQUIRED 1
    "$timeline" -w 'process B' -l 1500 "redis://127.0.0.1:$far" \
        lock 1000 unlock 300 lock 1000 unlock 900 lock 2600 unlock >>"$events" &
    b=$!
    pids+=("$b")
    local lane_a lane_b
    lane_a=$(lane 'process A') lane_b=$(lane 'process B')
    # A has had it, then B, then A again, for some time.
    until_seen last_holder "$lane_a" 2
    sleep 0.8
    kill -STOP "$a"
    note "$lane_a" FROM 'A is stopped'
    until_seen last_holder "$lane_b" 2
    sleep 0.6
    kill -CONT "$a"
    note "$lane_a" TO ''
    until_seen last_holder "$lane_b" 3
    sleep 0.7
    kill -STOP -- "-$way"
    note "$lane_b" FROM 'B is cut off from the server'
    until_seen seen LOST 2
    until_seen last_holder "$lane_a" 3
    sleep 0.4
    kill -CONT -- "-$way"
    note "$lane_b" TO ''
    wait "$a" "$b"
    kill "$looking" 2>/dev/null || :
    kill -KILL -- "-$way"
    draw lease 'One lock, two processes, a lease of 1.5 s' "\
Process A holds the lock three levels deep while B waits; the lease is renewed every \
third of it. Then A is stopped under the lock: its lease runs out at the server, B is \
granted the lock with a larger token, and A is told LOST as soon as it goes on. Then B \
is cut off from the server: it is told LOST before the lease is over there, and \
only then A is granted the lock."
}
# last_holder LANE TIMES: it has been granted the lock so often, and has it
last_holder() {
    awk -F '\t' -v lane="$1" -v times="$2" '
        $3 == "ACQUIRED" && $6 == 1 { last = $2; n[$2]++ }
        END { exit !(last == lane && n[lane] >= times) }' "$events"
}

# Eight locks are taken one after the other; the last of them while no replica
# gets anything; then the master is killed.
failover() {
    failed_over none 0 'Without min_replicas: what no replica had is lost, and told'
    failed_over some 1 'With min_replicas 1: what no replica has is not granted'
    draw failover 'A master is killed under held locks' "\
Two runs of the same. Eight locks are taken one after the other, the last of them \
while the replicas are stopped; then the master is killed, and Sentinels name another \
one. Without min_replicas the locks of that time are lost, which is told as soon as \
the new master has been asked. With min_replicas 1 they are not granted before \
the failover: none is lost, and those that waited are granted by the new master." \
        none some
}
failed_over() { # EVENTS MIN_REPLICAS TITLE
    local old uri="" i port program
    old=$(free_port)
    server "$old"
    local master=$!
    local replicas=()
    for i in 1 2; do
        port=$(free_port)
        server "$port" --replicaof 127.0.0.1 "$old"
        replicas+=($!)
    done
    for i in 1 2 3; do
        port=$(free_port)
        mkdir "$dir/$port"
        cat >"$dir/$port/conf" <<END
port $port
bind 127.0.0.1
dir $dir/$port
sentinel monitor main 127.0.0.1 $old 2
sentinel down-after-milliseconds main 1000
sentinel failover-timeout main 5000
END
        start redis-server "$dir/$port/conf" --sentinel
        until_seen redis-cli -p "$port" ping
        uri=$uri${uri:+,}127.0.0.1:$port
    done
    until_seen all_know_each_other "$port"
    begin "$1" "$3"
    "$timeline" -w lock -n 8 -o 120 -r "$2" -l 9000 "redis-sentinel://$uri/main" \
        lock 30000 unlock >>"$events" &
    program=$!
    until_seen seen ACQUIRED 5
    kill -STOP "${replicas[@]}"
    # What the sockets would hold for them is dropped, too.
    redis-cli -p "$old" client kill type replica >/dev/null
    note - FROM 'replicas stopped'
    if [ "$2" = 0 ]; then
        until_seen seen ACQUIRED 8
    else
        until_seen seen ASKED 8
        sleep 0.1
    fi
    note - MARK 'master killed'
    kill -KILL "$master"
    kill -CONT "${replicas[@]}"
    note - TO ''
    until_seen seen FAILOVER 1
    sleep 1.5
    kill "$program"
    wait "$program" 2>/dev/null || :
    note - TO ''
}
all_know_each_other() {
    redis-cli -p "$1" sentinel master main | tr '\n' ' ' |
        grep -q ' num-slaves 2 num-other-sentinels 2 '
}

# Who had it when, in some milliseconds out of the middle of a run.
handover() {
    handed_over plain 0 'As it is'
    handed_over turns 1 'With turn_ms 1'
    draw handover 'Eight threads of two processes, one lock: who had it when' "\
Two stretches of 8 ms. Each thread locks, unlocks and asks again. As it is, the processes take turns, and no thread is left out. With turn_ms 1 \
threads of one process pass the lock on among themselves before it goes to the other \
process, and more of them have it in the same time." plain turns
}
handed_over() { # EVENTS TURN_MS TITLE
    local port a b
    port=$(free_port)
    server "$port"
    begin "$1.all" ''
    for who in A B; do
        "$timeline" -w "$who" -n 4 -k 1500 -t "$2" "redis://127.0.0.1:$port" \
            lock unlock >>"$events" &
        pids+=($!)
    done
    wait "${pids[-1]}" "${pids[-2]}"
    excerpt 8000 "$dir/$1.all" >"$dir/$1.some"
    begin "$1" "$3: $(grep -c ACQUIRED "$dir/$1.some") grants in 8 ms"
    cat "$dir/$1.some" >>"$events"
}
# excerpt US FILE: so much from the middle, who everybody is, and what he did then
excerpt() {
    sort -n "$2" | awk -F '\t' -v long="$1" '
        { time[NR] = $1; line[NR] = $0; what[NR] = $3; lane[NR] = $2; grants += $3 == "ACQUIRED" }
        END {
            for (i = 1; i <= NR && n < grants / 2; i++) n += what[i] == "ACQUIRED"
            from = time[i]
            for (i = 1; i <= NR && time[i] < from; i++)
                if (what[i] == "LANE") at_first(line[i])
                else was[lane[i]] = what[i] ~ /^(ASKED|CONTENDED|ACQUIRED)$/ ? line[i] : ""
            for (who in was) if (was[who] != "") at_first(was[who])
            for (; i <= NR && time[i] <= from + long; i++)
                if (what[i] != "LANE") print line[i]
        }
        function at_first(s) {
            sub(/^[0-9]+/, from, s)
            print s
        }'
}

# draw PICTURE TITLE DESCRIPTION [EVENTS]...
draw() {
    local picture=$1 title=$2 about=$3
    shift 3
    [ $# -gt 0 ] || set -- "$picture"
    (cd "$dir" && "$OLDPWD/examples/rlock-timeline" -t "$title" -d "$about" "$@") \
        >"$dir/picture"
    mv "$dir/picture" "$out/$picture.svg"
    echo "$out/$picture.svg: $(wc -c <"$out/$picture.svg") bytes"
}

[ $# -gt 0 ] || set -- lease failover handover
for picture; do
    "$picture"
done
