#!/bin/sh
# run.sh [--from N] [--seeds M | --long] [--commands C]
# run.sh --seed N [--trace]
# run.sh --coverage [--seeds M]
#
# Builds the simulator, compares its store with a redis-server on C random
# commands (200000), and runs M seeds (10000) from N (1) on; some of them twice,
# which has to give the same history, byte for byte. A seed that fails is named.
# --long is a million seeds: hours.
# With --seed only that one is run; --trace tells what happens in it. With
# --coverage it is built by clang with counters, and so are the unit tests: tells
# which part of the lines and branches of src/core and src/wire M seeds (2000) and
# the unit tests reach together, file by file, and leaves those that nothing has
# reached in BUILD_DIR/unreached.txt; below 97 and 89 % of all is a failure.
# Closes with a line of figures and "N passed, N failed".
#
#   BUILD_DIR   where to build; build-sim
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   JOBS        how much at a time
set -eu

cd "$(dirname "$0")/../.."
build=$(realpath -m "${BUILD_DIR:-build-sim}")
jobs=${JOBS:-$(nproc)}
from=1 seeds='' commands=200000 seed='' trace='' coverage=''
while [ $# -gt 0 ]; do
    case $1 in
    --trace)
        trace=--trace
        shift
        continue
        ;;
    --coverage)
        coverage=yes
        shift
        continue
        ;;
    --long)
        seeds=1000000
        shift
        continue
        ;;
    --from) from=$2 ;;
    --seeds) seeds=$2 ;;
    --commands) commands=$2 ;;
    --seed) seed=$2 ;;
    *)
        sed -n 's/^# run.sh/usage: run.sh/p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done

# Whatever stops us before all have run is a failure, and is said so.
trap 'echo "0 passed, 1 failed"' EXIT

make_it() {
    tests/deps.sh sim
    # shellcheck disable=SC2086
    cmake -S . -B "$build" -DRLOCK_BUILD_SIM=ON -DRLOCK_BUILD_TESTS=OFF \
        -DRLOCK_BUILD_EXAMPLES=OFF -DRLOCK_INSTALL=OFF ${CMAKE_ARGS:-} &&
        cmake --build "$build" --target rlock_sim rlock_sim_compare -j "$jobs"
}
# Branches are counted as in tests/coverage.sh.
cover() {
    tests/deps.sh coverage
    # shellcheck disable=SC2086
    CC=clang cmake -S . -B "$build/counted" -DRLOCK_BUILD_SIM=ON \
        -DRLOCK_COVERAGE=ON -DRLOCK_BUILD_TESTS=ON -DRLOCK_TEST_PLAIN=ON \
        -DRLOCK_BUILD_EXAMPLES=OFF -DRLOCK_INSTALL=OFF ${CMAKE_ARGS:-} &&
        cmake --build "$build/counted" --target rlock_sim test_unit rlock \
            -j "$jobs"
}
tell_coverage() {
    rm -rf "$build/counts"
    LLVM_PROFILE_FILE="$build/counts/%m.sim.profraw" \
        "$build/counted/tests/sim/rlock_sim" --from "$from" \
        --seeds "${seeds:-2000}" || :
    LLVM_PROFILE_FILE="$build/counts/%m%c.unit.profraw" \
        "$build/counted/tests/unit/unit" || :
    llvm-profdata merge -o "$build/counts.profdata" "$build"/counts/*.profraw
    find "$PWD/src/core" "$PWD/src/wire" -name '*.[ch]' -print0 | sort -z |
        xargs -0 llvm-cov export -format=lcov "$build/counted/librlock.so" \
            -instr-profile "$build/counts.profdata" |
        awk -F '[:,]' -v root="$PWD/" -v list="$build/unreached.txt" \
            -v least_lines=97 -v least_branches=89 '
        function row(name, l, lh, b, bh) {
            printf "%-24s %5d lines, %6.2f %%   %5d branches, %6.2f %%\n",
                name, l, l ? 100 * lh / l : 100, b, b ? 100 * bh / b : 100
        }
        BEGIN { printf "" >list }
        /^SF:/ {
            file = substr($0, 4)
            sub("^" root, "", file)
            l = lh = b = bh = 0
        }
        /^DA:/ {
            l++
            lh += $3 > 0
            if ($3 + 0 == 0)
                print file ":" $2 >list
        }
        /^BRDA:/ {
            b++
            bh += $5 > 0
            if ($5 + 0 == 0)
                print file ":" $2 ": condition " int($4 / 2) + 1 \
                    " was never " ($4 % 2 ? "false" : "true") >list
        }
        /^end_of_record/ {
            if (l)
                row(file, l, lh, b, bh)
            L += l; LH += lh; B += b; BH += bh
        }
        END {
            row("core and wire", L, LH, B, BH)
            ok = (100 * LH / L >= least_lines) + (100 * BH / B >= least_branches)
            printf "%d passed, %d failed\n", ok, 2 - ok
            exit ok < 2
        }'
}

mkdir -p "$build"
if [ -n "$coverage" ]; then
    if ! cover >"$build/log" 2>&1; then
        cat "$build/log"
        exit 1
    fi
    trap - EXIT
    tell_coverage
    exit
fi
if ! make_it >"$build/log" 2>&1; then
    cat "$build/log"
    exit 1
fi
sim=$build/tests/sim/rlock_sim

if [ -n "$seed" ]; then
    trap - EXIT
    exec "$sim" --seed "$seed" $trace
fi

passed=0 failed=0
count() { # FILE: a line of counts ends it
    last=$(tail -n 1 "$1")
    passed=$((passed + ${last%% passed*}))
    last=${last#*, }
    failed=$((failed + ${last%% failed*}))
}

"$build/tests/sim/compare" "$commands" >"$build/compare.log" || :
cat "$build/compare.log"
count "$build/compare.log"

# The same trace from two processes, also after other seeds.
"$sim" --from "$from" --seeds 20 --trace >"$build/trace.1" || :
"$sim" --from "$from" --seeds 20 --trace >"$build/trace.2" || :
# The last lines tell times.
if [ "$(grep -v ' seeds in ' "$build/trace.1" | sha1sum)" = \
    "$(grep -v ' seeds in ' "$build/trace.2" | sha1sum)" ]; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "two runs of seeds $from and following differ"
fi
rm -f "$build/trace.1" "$build/trace.2"
"$sim" --from "$from" --seeds 200 --twice >"$build/twice.log" || :
count "$build/twice.log"

# Seeds that a judge was wrong about: threads that ended when all was quiet.
for seed in 850001846; do
    "$sim" --seed "$seed" >"$build/once.log" || cat "$build/once.log"
    count "$build/once.log"
done

seeds=${seeds:-10000}
# As many at a time as there are processors; each its own part of the seeds.
i=0
while [ "$i" -lt "$jobs" ]; do
    first=$((from + seeds * i / jobs))
    next=$((from + seeds * (i + 1) / jobs))
    i=$((i + 1))
    "$sim" --from "$first" --seeds $((next - first)) >"$build/seeds.$i.log" &
done
wait
while [ "$i" -gt 0 ]; do
    cat "$build/seeds.$i.log"
    count "$build/seeds.$i.log"
    i=$((i - 1))
done

trap - EXIT
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
