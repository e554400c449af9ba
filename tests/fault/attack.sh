#!/bin/sh
# attack.sh [--long] [--sentinel | --cluster] [--seed N] [OPTION...]
#
# Attacks the library, in some minutes, or for about an hour with --long:
# processes lock, three with threads and one with an event loop and 200 owners,
# while servers are killed, stopped and emptied, connections cut, answers lost,
# processes killed and stopped, allocations and system calls fail. Two judges
# outside Redis watch. Fails when they have found anything; what there was to see
# is then in OUT/report.md and timeline.svg, and, after a failure, all that the
# judges have read. The same --seed deals the same faults again.
# Further options: see fault/attack/main.c.
#
# Most locks are at one server; with --sentinel at a master that has a replica
# and three Sentinels, with --cluster in a Redis Cluster of six. There masters
# are killed, stopped over their failover, and relieved, and slots move, one
# fault at a time, and nothing is done that loses data by itself. Replication is
# asynchronous, so a grant is one when the replica has it; with --replicas 0 it is
# not waited for, and overlaps that a failover explains are excused, and counted.
#
#   BUILD_DIR, CMAKE_ARGS, CC   as for tests/run.sh
#   OUT   BUILD_DIR/attack
set -eu

cd "$(dirname "$0")/../.."
build=${BUILD_DIR:-build}

if [ "${1-}" = --long ]; then
    shift
    set -- --grants 10000000 --faults 3000 --seconds 7200 --gap 550 "$@"
else
    set -- --grants 200000 --faults 200 --seconds 720 --gap 150 "$@"
fi

tests/deps.sh test
# shellcheck disable=SC2086
cmake -S . -B "$build" -DRLOCK_BUILD_TESTS=ON ${CMAKE_ARGS:-} >/dev/null
cmake --build "$build" -j "$(nproc)" --target rlock_attack >/dev/null

out=$(realpath -m "${OUT:-$build/attack}")
rm -rf "$out" "$out".san.*
# Whatever ends us, the servers' directories go.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 143' HUP INT TERM
# A process that is killed later tells nobody what a sanitizer has found in it.
log=log_path=$out.san
export ASAN_OPTIONS="$log:detect_stack_use_after_return=1"
export LSAN_OPTIONS="$log" TSAN_OPTIONS="$log"
export UBSAN_OPTIONS="$log:print_stacktrace=1"

status=0
"$build/tests/attack" --out "$out" "$@" || status=$?
for report in "$out".san.*; do
    if [ -e "$report" ]; then
        cat "$report"
        echo "a sanitizer has reported"
        status=1
    fi
done
if [ "$status" = 0 ]; then
    rm -f "$out"/history.* "$out/arena" # large, and judged
fi
echo "see $out/report.md and $out/timeline.svg"
exit $status
