#!/bin/sh
# planted.sh [NAME]...
#
# The judges are judged: each patch of ../fault/planted that lies in what the
# simulator runs (core, wire, locks, the tasks and the watch of the keeper, Lua; but
# nothing is started on a loop there), and each of planted/, breaks the library on
# purpose, and within 1,000 seeds a judge has to find out. A patch that needs more
# says so: "# seeds: N". One that shows only with replicas, or in a cluster
# ("# at: ..."), or that no seed has shown ("# not by: the simulator"), is left to
# the attack. With "# shrinks" the seed is made smaller, too, and has to fail as it
# is told then.
# The library as it is comes first; there nothing is found. Closes with
# "N passed, N failed".
#
#   BUILD_DIR   where to build; build-sim-planted
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   JOBS        how much at a time
#   SEEDS       in how many seeds it has to be found; 1000
set -eu

cd "$(dirname "$0")/../.."
tests/deps.sh sim
mkdir -p "${BUILD_DIR:=build-sim-planted}"
build=$(cd "$BUILD_DIR" && pwd)
seeds=${SEEDS:-1000}
jobs=${JOBS:-$(nproc)}
passed=0 failed=0

# Does it change only what runs here, or at least some of it?
lies_here() { # PATCH
    grep -q '^+++ b/\(lua\|src/core\|src/wire\|src/base\|src/drive/task\|src/drive/batch\|src/drive/watch\|src/lock\)' "$1" &&
        ! grep -q '^+++ b/src/lock/start' "$1"
}

# What ends in no verdict has not been found: a crash, a loop.
simulate() { # SEEDS
    timeout 900 "$build/tree/tests/sim/rlock_sim" --seeds "$1" --first \
        >"$build/log" 2>&1
}

caught() { # PATCH
    most=$(sed -n 's/^# seeds: //p' "$1")
    if simulate "${most:-$seeds}"; then
        echo "nothing is found in ${most:-$seeds} seeds" >>"$build/log"
        return 1
    fi
    grep '^seed [0-9]*: judge' "$build/log" &&
        { ! grep -q '^# shrinks' "$1" || shrinks; }
}

# Of the seed that is in the log: the shrinker says what the smallest world is
# judged, and with which arguments it is run.
shrinks() {
    sim=$build/tree/tests/sim/rlock_sim
    seed=$(sed -n 's/^seed \([0-9]*\): judge.*/\1/p' "$build/log")
    timeout 900 "$sim" --seed "$seed" --shrink >"$build/log" 2>&1 || :
    judged=$(grep -m 1 '^judge' "$build/log") || return 1
    args=$(grep -m 1 "^--seed $seed --set " "$build/log") || return 1
    # shellcheck disable=SC2086
    ! "$sim" $args >"$build/log" 2>&1 &&
        grep -F "seed $seed: $judged" "$build/log"
}

make_sim() {
    cmake --build "$build/tree" --target rlock_sim -j "$jobs" >"$build/log" 2>&1
}

patched() { # PATCH OPTION...
    patch=$1
    shift
    patch -s -p1 --fuzz=0 -d "$build/source" "$@" <"$patch" >"$build/log"
}

# All of it or nothing, and a patch that does not fit is a failure.
planted() { # PATCH
    patched "$1" --dry-run && patched "$1" || return 1
    status=0
    make_sim && caught "$1" || status=1
    patched "$1" -R
    return "$status"
}

check() { # NAME COMMAND...
    name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok - $name"
    else
        failed=$((failed + 1))
        echo "not ok - $name"
        cat "$build/log"
    fi
}

if [ $# = 0 ]; then
    for plant in tests/fault/planted/*.patch tests/sim/planted/*.patch; do
        if lies_here "$plant" && ! grep -q '^# at:\|^# not by:' "$plant"; then
            set -- "$@" "$PWD/$plant"
        fi
    done
else
    names=$*
    set --
    for name in $names; do
        set -- "$@" "$(ls "$PWD"/tests/*/planted/"$name.patch")"
    done
fi

# Whatever stops us before the first verdict is a failure, and is said so.
trap 'echo "0 passed, 1 failed"' EXIT

# One copy that is patched again and again: only what differs is rebuilt.
rm -rf "$build/source" "$build/tree"
mkdir "$build/source"
cp -R CMakeLists.txt include src lua tests "$build/source"
# shellcheck disable=SC2086
cmake -S "$build/source" -B "$build/tree" -DRLOCK_BUILD_SIM=ON \
    -DRLOCK_INSTALL=OFF ${CMAKE_ARGS:-} >"$build/log"
make_sim
check 'nothing is found without a defect' simulate "$seeds"
trap - EXIT
for plant; do
    name=${plant##*/}
    check "${name%.patch}" planted "$plant"
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
