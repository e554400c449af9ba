#!/bin/sh
# run.sh [SECONDS]
#
# Builds the fuzz targets and runs each for so long (60), two at a time, from
# the inputs that are stored in corpus/; those of whole sessions are replayed
# under ThreadSanitizer, too. What is found on the way stays in the build
# directory. An input that makes a target fail is kept there, and it is told how
# to see it again. Closes with "N passed, N failed".
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
build_in() { # FOLDER SANITIZER TARGET
    # shellcheck disable=SC2086
    CC=clang cmake -S . -B "$1" -DRLOCK_BUILD_FUZZERS=ON \
        -DRLOCK_BUILD_TESTS=OFF -DRLOCK_BUILD_EXAMPLES=OFF \
        -DRLOCK_BUILD_BENCH=OFF -DRLOCK_SANITIZE="$2" ${CMAKE_ARGS:-}
    cmake --build "$1" -j "${JOBS:-$(nproc)}" --target "$3"
}
build_in "$build" address all
build_in "$build/races" thread fuzz_session

# What is freed is kept for a while; less will do than an hour's worth.
export ASAN_OPTIONS="quarantine_size_mb=32${ASAN_OPTIONS:+:$ASAN_OPTIONS}"

# run NAME COMMAND [ARGUMENT]...
run() {
    dir=$out/$1 status=0
    shift
    "$@" >"$dir/log" 2>&1 || status=$?
    echo "$status" >"$dir/status"
}

fuzz() {
    rm -rf "${out:?}/$1"
    mkdir -p "$out/$1/found"
    run "$1" "$build/tests/fuzz/$1" -max_total_time="$seconds" -timeout=20 \
        -rss_limit_mb=2048 -print_final_stats=1 -use_value_profile=1 \
        -dict=tests/fuzz/resp.dict -artifact_prefix="$out/$1/" \
        "$out/$1/found" "tests/fuzz/corpus/$1"
}

# ThreadSanitizer finds no room where the kernel scatters too widely.
replay() {
    rm -rf "$out/races"
    mkdir -p "$out/races"
    set -- "$build/races/tests/fuzz/session" tests/fuzz/corpus/session/*
    if setarch -R true 2>/dev/null; then
        set -- setarch -R "$@"
    fi
    run races "$@"
}

tell() {
    dir=$out/$1
    inputs=$(sed -n 's/^stat::number_of_executed_units: *//p; s/ inputs$//p' \
        "$dir/log")
    if [ "$(cat "$dir/status")" = 0 ] && [ "${inputs:-0}" -gt 0 ]; then
        passed=$((passed + 1))
        echo "$1: $inputs inputs, nothing found"
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

printf '\n%s\n' "Fuzzing, $seconds s for each target"
fuzz session &
fuzz reply &
wait
fuzz doorbell &
fuzz options &
wait
fuzz uri &
fuzz slotmap_reply &
wait
fuzz raw_reply &
wait
replay

passed=0 failed=0
for name in session reply doorbell options uri slotmap_reply raw_reply races; do
    tell "$name"
done
trap - EXIT
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
