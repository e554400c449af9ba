#!/bin/sh
# run.sh [SECONDS]
#
# Builds the fuzz targets and runs each for so long (60), two at a time, from
# the inputs that are stored in corpus/. What is found on the way stays in the
# build directory. An input that makes one fail is kept there, and it is told
# how to see it again. Closes with "N passed, N failed".
#
#   BUILD_DIR   where to build; build-fuzz
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   JOBS        how much at a time, of the build
set -eu

cd "$(dirname "$0")/../.."
seconds=${1:-60}
build=$(realpath -m "${BUILD_DIR:-build-fuzz}")
out=$build/fuzz

# Whatever stops us before all have run is a failure, and is said so.
trap 'echo "0 passed, 1 failed"' EXIT

tests/deps.sh fuzz
# shellcheck disable=SC2086
CC=clang cmake -S . -B "$build" -DRLOCK_BUILD_FUZZERS=ON \
    -DRLOCK_BUILD_TESTS=OFF -DRLOCK_BUILD_EXAMPLES=OFF \
    -DRLOCK_BUILD_BENCH=OFF ${CMAKE_ARGS:-}
cmake --build "$build" -j "${JOBS:-$(nproc)}"

# What is freed is kept for a while; less will do than an hour's worth.
export ASAN_OPTIONS="quarantine_size_mb=32${ASAN_OPTIONS:+:$ASAN_OPTIONS}"

fuzz() {
    dir=$out/$1
    rm -rf "$dir"
    mkdir -p "$dir/found"
    status=0
    "$build/tests/fuzz/$1" -max_total_time="$seconds" -timeout=20 \
        -rss_limit_mb=2048 -print_final_stats=1 -use_value_profile=1 \
        -dict=tests/fuzz/resp.dict -artifact_prefix="$dir/" \
        "$dir/found" "tests/fuzz/corpus/$1" >"$dir/log" 2>&1 || status=$?
    echo "$status" >"$dir/status"
}

tell() {
    dir=$out/$1
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/log")
    if [ "$(cat "$dir/status")" = 0 ] && [ "${runs:-0}" -gt 0 ]; then
        passed=$((passed + 1))
        echo "$1: $runs inputs, nothing found"
        return
    fi
    failed=$((failed + 1))
    grep -v '^#[0-9]' "$dir/log" | tail -n 60
    echo "$1: FAILED; the log is $dir/log"
    for input in "$dir"/crash-* "$dir"/leak-* "$dir"/timeout-* "$dir"/oom-*; do
        if [ -e "$input" ]; then
            echo "to see it again: $build/tests/fuzz/$1 $input"
        fi
    done
}

targets='session reply doorbell options uri'
printf '\n%s\n' "Fuzzing for $seconds s each: $targets"
# shellcheck disable=SC2086
set -- $targets
while [ $# -gt 0 ]; do
    fuzz "$1" &
    if [ $# -gt 1 ]; then
        fuzz "$2" &
        shift
    fi
    shift
    wait
done

passed=0 failed=0
for target in $targets; do
    tell "$target"
done
trap - EXIT
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
