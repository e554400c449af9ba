#!/bin/sh
# run.sh [--from N] [--seeds M | --long] [--set KEY=VALUE,...] [--commands C]
# run.sh --seed N [--trace]... [--shrink] [--set KEY=VALUE,...]
#
# Builds the world around librlock.a as it is shipped, compares its store with a
# redis-server on C random commands (200000), looks that the library calls nothing
# behind the world's back (seam.sh), that the program calls every public function
# (calls.sh), that what is no world is refused (refuses.sh), and runs M seeds (2000)
# from N (1) on; 200 of them twice, in two orders, which has to give the same histories. What is found is told with its
# seed, and with the two commands that show it again and make it smaller. --long is
# 100,000 seeds.
# With --seed only that one is run; --trace tells what happens in it, twice given
# also what is said. Closes with figures and "N passed, N failed".
#
#   BUILD_DIR   where to build; build-sim
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   JOBS        how much at a time
set -eu

cd "$(dirname "$0")/../.."
build=$(realpath -m "${BUILD_DIR:-build-sim}")
jobs=${JOBS:-$(nproc)}
from=1 seeds=2000 commands=200000 seed='' flags='' set=''
usage() {
    echo "run.sh: $*" >&2
    sed -n 's/^# run.sh/usage: run.sh/p' "$0" >&2
    trap - EXIT
    exit 2
}
is_number() {
    case $1 in
    '' | *[!0-9]*) return 1 ;;
    esac
}
while [ $# -gt 0 ]; do
    case $1 in
    --trace | --shrink)
        flags="$flags $1"
        shift
        continue
        ;;
    --long)
        seeds=100000
        shift
        continue
        ;;
    --from | --seeds | --seed | --commands)
        is_number "${2:-}" || usage "$1 wants a number"
        eval "${1#--}=\$2"
        ;;
    --set)
        [ $# -gt 1 ] || usage "--set wants KEY=VALUE,..."
        set=$2
        ;;
    *) usage "there is no option $1" ;;
    esac
    shift 2
done
[ -z "$flags" ] || [ -n "$seed" ] || usage "$flags is for one --seed"

# Whatever stops us before all have run is a failure, and is said so.
trap 'echo "0 passed, 1 failed"' EXIT

make_it() {
    tests/deps.sh sim
    # shellcheck disable=SC2086
    cmake -S . -B "$build" -DRLOCK_BUILD_SIM=ON -DRLOCK_BUILD_TESTS=OFF \
        -DRLOCK_BUILD_EXAMPLES=OFF -DRLOCK_INSTALL=OFF ${CMAKE_ARGS:-} &&
        cmake --build "$build" --target rlock_sim rlock_sim_compare -j "$jobs"
}
mkdir -p "$build"
if ! make_it >"$build/log" 2>&1; then
    cat "$build/log"
    exit 1
fi
sim=$build/tests/sim/sim

if [ -n "$seed" ]; then
    trap - EXIT
    # shellcheck disable=SC2086
    exec "$sim" --seed "$seed" $flags ${set:+--set "$set"}
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

hiredis=$(sed -n 's/^RLOCK_hiredis_ARCHIVE:[A-Z]*=//p' "$build/CMakeCache.txt")
if tests/sim/seam.sh "$build/librlock.a" "$hiredis"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
fi

# Does the program call every public function?
if tests/sim/calls.sh "$build/tests/sim/CMakeFiles/rlock_sim.dir"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
fi

# Is what is no seed, option or world refused?
if tests/sim/refuses.sh "$sim"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
fi

# Each in its own part of the seeds; what is found is in the files.
"$sim" --from "$from" --seeds 200 --twice ${set:+--set "$set"} \
    >"$build/twice.log" || :
if grep 'two histories' "$build/twice.log"; then
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi

# Ctrl-C reaches them, too, and each says how far it came.
trap 'interrupted=yes' INT
interrupted=
i=0
while [ "$i" -lt "$jobs" ]; do
    first=$((from + seeds * i / jobs))
    next=$((from + seeds * (i + 1) / jobs))
    i=$((i + 1))
    : >"$build/seeds.$i.log"
    [ "$next" -gt "$first" ] || continue # more jobs than seeds
    "$sim" --from "$first" --seeds $((next - first)) ${set:+--set "$set"} \
        >"$build/seeds.$i.log" &
done
wait
[ -z "$interrupted" ] || wait
while [ "$i" -gt 0 ]; do
    cat "$build/seeds.$i.log"
    [ ! -s "$build/seeds.$i.log" ] || count "$build/seeds.$i.log"
    i=$((i - 1))
done

trap - EXIT
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
