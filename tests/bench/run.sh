#!/bin/sh
# run.sh [--all] [--peers] [--write | --check]
#
# Prints the table of the figures that the library is to reach. Takes about
# three minutes, with --all eight; a figure that is missed is marked, and no
# failure. With --peers come rows that compare it with other libraries, which
# are installed first where that can be done (peers.sh); that takes a minute or
# two more.
#
# With --write it measures RUNS times, and puts what came out into src/doc/figures/,
# with the tables of src/doc/figures.md and the plots (figures.sh), which say on which
# machine, and if that was busy beside it.
#
# With --check it measures RUNS times, and fails if a figure is missed in every run:
# what reaches its aim in one of them is within the spread.
#
#   BUILD_DIR   where to build; build-bench
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   RUNS        how often, with --write or --check; 5
#   MACHINE     what the figures say it was measured on
set -eu

cd "$(dirname "$0")/../.."
build=${BUILD_DIR:-build-bench}
programs="pair guards scripts guarded several far hung contend handover idle \
    held async started operate kinds held_kinds line readers"
all=
peers=
then=
for option; do
    case $option in
        --all) all=yes ;;
        --peers) peers=yes ;;
        --write | --check) then=${option#--} ;;
        *)
            echo "usage: run.sh [--all] [--peers] [--write | --check]" >&2
            exit 2
            ;;
    esac
done
[ -z "$all" ] || programs="$programs threads rivals crowd distance tls replicas \
    cluster takeover notice python"

{
    # What cannot be had of other libraries is left out.
    [ -z "$peers" ] || tests/deps.sh peers || :
    tests/deps.sh demo
    # shellcheck disable=SC2086
    cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DRLOCK_SANITIZE= \
        -DRLOCK_BUILD_BENCH=ON -DRLOCK_BUILD_TESTS=OFF \
        -DRLOCK_BUILD_EXAMPLES=OFF ${CMAKE_ARGS:-}
    cmake --build "$build" -j "$(nproc)"
} >&2

# A server for each program: none works on what another one left.
rows() { # PROGRAM
    if [ "$1" = guards ] && [ ! -e "$build/bench/guards" ]; then
        echo "no C++ compiler: the row of rlock.hpp is left out" >&2
        return
    fi
    if [ "$1" = python ] && ! { [ -e "$build/bench/python" ] &&
        command -v python3 >/dev/null; }; then
        echo "no python3, or no shared library: Python's rows are left out" >&2
        return
    fi
    tests/with-redis.sh "$build/bench/$1"
}

# All of it RUNS times, into $work/run1, run2 ...; each row begins with its program's
# name.
measured() {
    runs=${RUNS:-5} run=0
    while [ $((run += 1)) -le "$runs" ]; do
        echo "run $run of $runs" >&2
        for program in $programs; do
            rows "$program" >"$work/rows" || echo "$program has failed" >&2
            sed "s/^/$program /" "$work/rows" | tee -a "$work/run$run"
        done
    done
}

written() {
    machine=${MACHINE:-"a machine with $(nproc) processors, $(uname -m)"}
    busy=$(cat "$work"/run* | grep -c 'the machine was busy') ||
        machine="$machine, with nothing else to do"
    if [ "$busy" -gt 0 ]; then
        machine="$machine, which other programs kept busy in $busy of $(
            cat "$work"/run* | wc -l) rows"
    fi
    tests/bench/figures.sh write "$machine" "$work"/run*
}
if [ -n "$then" ]; then
    work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 143' HUP INT TERM
    measured
    case $then in
        write) written ;;
        check) tests/bench/figures.sh missed "$work"/run* ;;
    esac
    exit
fi

echo "| what | at most | measured | remarks |"
echo "|---|---|---|---|"
for program in $programs; do
    rows "$program"
done
[ -z "$all" ] || tests/bench/crossings.sh
[ -z "$peers" ] || tests/bench/peers.sh "$build"
