#!/bin/sh
# attack.sh [--long] [--seed N] [OPTION...]
#
# Attacks the library, in some minutes, or an hour with --long: processes lock
# while servers are killed, stopped and emptied, connections cut, answers lost,
# processes killed and stopped, allocations and system calls fail. Two judges
# outside Redis watch. Fails when they have found anything; what there was to
# see is then in BUILD_DIR/attack/report.md and timeline.svg. The same --seed
# deals the same faults again. Further options: see fault/attack/main.c.
#
#   BUILD_DIR, CMAKE_ARGS, CC   as for tests/run.sh
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

out=$build/attack
rm -rf "$out"
status=0
"$build/tests/attack" --out "$out" "$@" || status=$?
# They are large, and the report has been written.
rm -f "$out"/history.* "$out/arena"
echo "see $out/report.md and $out/timeline.svg"
exit $status
