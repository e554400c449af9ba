#!/bin/sh
# planted.sh [NAME]...
#
# The judges are judged: each patch of ../fault/planted and planted/ breaks the
# library on purpose, and within 5,000 seeds a judge has to find out. NAME is a
# patch's, with its folder if several have it: fault/NAME. A patch may say more:
#
#   # sim from: N             the first of these seeds, just before the one that
#                             found it last: this saves the others
#   # sim seeds: N            it needs more
#   # sim set: KEY=V,...      it shows in few of all; in these it is seen
#   # sim: no REASON          it shows only with what the world has not got
#
# For each is told with which seed it was found, and by whom. The library as it is
# comes first, for 500 seeds; there nothing is found. Closes with "N passed, N
# failed".
#
#   BUILD_DIR   where to build; build-sim-planted
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   JOBS        how much at a time
#   SEEDS       in how many seeds it has to be found; 5000
#   FROM        the first of them, whatever a patch says
#   SEED_SET    what is set in all of them, as with --set
set -eu

cd "$(dirname "$0")/../.."
tests/deps.sh sim
mkdir -p "${BUILD_DIR:=build-sim-planted}"
build=$(cd "$BUILD_DIR" && pwd)
seeds=${SEEDS:-5000}
from=${FROM:-1}
jobs=${JOBS:-$(nproc)}
passed=0 failed=0

# Without numbers: what the library as it is is found with is no defect of a
# patch, whichever seed shows it then.
complaints() { # FILE
    grep -a '^seed [0-9]*: [^h]' "$1" | sed 's/^seed [0-9]*: //; s/ -- at .*//
        s/owner [0-9]* has/owner has/; s/[0-9][0-9]*/N/g'
}

run_part() { # FIRST SEEDS FILE
    timeout 900 "$build/tree/tests/sim/sim" --from "$1" --seeds "$2" \
        ${put:+--set "$put"} >"$3" 2>&1 || :
}

# In parts, because a defect that is found at once would wait for all otherwise.
simulate() { # SEEDS
    part=100
    first=$from
    : >"$build/log"
    while [ "$first" -lt $((from + $1)) ]; do
        i=0
        while [ "$i" -lt "$jobs" ]; do
            run_part $((first + part * i)) "$part" "$build/log.$i" &
            i=$((i + 1))
        done
        wait
        cat "$build"/log.* >>"$build/log"
        first=$((first + part * jobs))
        [ -z "$stops" ] || ! new_complaint >/dev/null || return 1
    done
    ! new_complaint >/dev/null
}

# The first line of the log whose complaint the library itself has not got.
new_complaint() {
    grep -a '^seed [0-9]*: [^h]' "$build/log" >"$build/found" || return 1
    complaints "$build/found" >"$build/said"
    paste -d '\t' "$build/said" "$build/found" |
        awk -F '\t' -v known="$build/known" '
            BEGIN { while ((getline line < known) > 0) is_known[line] = 1 }
            !($1 in is_known) { print $2; n = 1; exit }
            END { exit !n }'
}

# Each seed is a process, so a crash, or a loop, is a finding as well.
caught() { # PATCH
    most=$(sed -n 's/^# sim seeds: //p' "$1")
    from=${FROM:-$(sed -n 's/^# sim from: //p' "$1")}
    from=${from:-1}
    put=${SEED_SET:-$(sed -n 's/^# sim set: //p' "$1")}
    if simulate "${most:-$seeds}"; then
        echo "nothing is found in ${most:-$seeds} seeds" >"$build/log"
        return 1
    fi
    new_complaint | cut -c 1-200
    seed=$(new_complaint | sed 's/^seed \([0-9]*\): .*/\1/')
    if ! "$build/clean" --seed "$seed" ${put:+--set "$put"} >"$build/log" 2>&1; then
        echo "so it is without the defect" >>"$build/log"
        return 1
    fi
}

make_sim() {
    cmake --build "$build/tree" --target rlock_sim -j "$jobs" \
        >"$build/log" 2>&1
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
    cp "$build/log" "$build/kept"
    patched "$1" -R
    cp "$build/kept" "$build/log"
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
        if why=$(sed -n 's/^# sim: no //p' "$plant") && [ -n "$why" ]; then
            echo "left out - $(basename "$plant" .patch): $why"
        else
            set -- "$@" "$PWD/$plant"
        fi
    done
else
    names=$*
    set --
    for name in $names; do
        case $name in
        */*) set -- "$@" "$PWD/tests/${name%/*}/planted/${name##*/}.patch" ;;
        *) set -- "$@" "$(ls "$PWD"/tests/*/planted/"$name.patch")" ;;
        esac
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
    -DRLOCK_BUILD_TESTS=OFF -DRLOCK_BUILD_EXAMPLES=OFF -DRLOCK_INSTALL=OFF \
    ${CMAKE_ARGS:-} >"$build/log"
make_sim
cp "$build/tree/tests/sim/sim" "$build/clean"
: >"$build/known"
rm -f "$build"/log.*
stops=''
put=${SEED_SET:-}
check 'nothing is found without a defect' simulate 500
stops=yes
complaints "$build/log" | sort -u >"$build/known"
trap - EXIT
for plant; do
    name=${plant##*/}
    check "${name%.patch}" planted "$plant"
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
