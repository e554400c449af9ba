#!/bin/sh
# run.sh [--all] [--peers]
#
# Prints the table of the figures that the library is to reach. Takes about
# three minutes, with --all eight; a figure that is missed is marked, and no
# failure. With --peers come rows that compare it with other libraries, which
# are installed first where that can be done (peers.sh); that takes a minute or
# two more.
#
#   BUILD_DIR   where to build; build-bench
#   CMAKE_ARGS  more arguments for CMake, split at blanks
set -eu

cd "$(dirname "$0")/../.."
build=${BUILD_DIR:-build-bench}
programs="pair guards scripts guarded several far hung contend handover idle \
    held async started"
all=
peers=
for option; do
    case $option in
        --all) all=yes ;;
        --peers) peers=yes ;;
        *)
            echo "usage: run.sh [--all] [--peers]" >&2
            exit 2
            ;;
    esac
done
[ -z "$all" ] || programs="$programs threads rivals crowd distance tls replicas \
    cluster takeover notice"

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

echo "| what | at most | measured | remarks |"
echo "|---|---|---|---|"
# A server for each: none works on what another one left.
for program in $programs; do
    if [ "$program" = guards ] && [ ! -e "$build/bench/guards" ]; then
        echo "no C++ compiler: the row of rlock.hpp is left out" >&2
        continue
    fi
    tests/with-redis.sh "$build/bench/$program"
done
[ -z "$all" ] || tests/bench/crossings.sh
[ -z "$peers" ] || tests/bench/peers.sh "$build"
