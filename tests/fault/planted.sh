#!/bin/sh
# planted.sh [NAME]...
#
# The checker is checked: each patch in planted/ (or only those named) breaks
# the library on purpose, and the attack has to find out. The library as it is
# comes first; there it must find nothing. Closes with "N passed, N failed".
#
# A patch begins with what it breaks (and where, so that it can follow the
# code), the faults under which that shows, and the offences as one of which it
# is to be caught:
#
#   # under: FAULT
#   # caught as: OFFENCE      one of these
#   # and as: OFFENCE         and each of these
#
# and may say with which option of the attack, as where home is to have replicas,
# or all locks are to be granted in lines; and how long a round is, if not 4 s,
# where several things have to meet:
#
#   # at: OPTION            one word, as --kinds=100
#   # seconds: SECONDS
#
# What else they say ("# sim ...") is for ../sim/planted.sh.
#
#   BUILD_DIR   where to build; build-planted
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   JOBS        how much at a time
#   CLEAN       no: not the library as it is
set -eu

cd "$(dirname "$0")/../.."
tests/deps.sh planted
mkdir -p "${BUILD_DIR:=build-planted}"
build=$(cd "$BUILD_DIR" && pwd)
plants=$PWD/tests/fault/planted
jobs=${JOBS:-$(nproc)}
passed=0 failed=0

said() { # KEY PATCH...: what the heads of the patches say
    key=$1
    shift
    sed -n "s/^# $key: //p" "$@" | sort -u
}

attack() { # SEED SECONDS GRANTS PATCH...; under the faults of the patches
    seed=$1 seconds=$2 grants=$3
    shift 3
    said under "$@" >"$build/faults"
    # shellcheck disable=SC2046
    set -- $(said at "$@")
    while read -r fault; do
        set -- "$@" --only "$fault"
    done <"$build/faults"
    rm -rf "$build/out"
    "$build/tree/tests/attack" --seed "$seed" --seconds "$seconds" --gap 20 \
        --grants "$grants" --faults 20 --out "$build/out" "$@" \
        >"$build/log" 2>&1
}

# Short rounds, as long as nothing is found: whom a fault hits is a matter of
# luck. No round has enough of grants before its time is up.
caught() { # PATCH
    : >"$build/found"
    seconds_each=$(said seconds "$1")
    for seed in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
        attack "$seed" "${seconds_each:-4}" 1000000000 "$1" || :
        cat "$build/log" >>"$build/found"
        if found_all "$1"; then
            return
        fi
    done
    return 1
}

found_all() { # PATCH
    said 'caught as' "$1" >"$build/offences"
    grep -F -f "$build/offences" "$build/log" || return 1
    said 'and as' "$1" >"$build/offences"
    while read -r offence; do
        grep -q -F "$offence" "$build/found" || return 1
    done <"$build/offences"
}

patched() { # PATCH OPTION...
    patch=$1
    shift
    patch -s -p1 --fuzz=0 -d "$build/source" "$@" <"$patch" >>"$build/log"
}

planted() { # PATCH
    # All of it or nothing, and a patch that does not fit is a failure.
    patched "$1" --dry-run && patched "$1" || return 1
    status=0
    make_attack && caught "$1" || status=1
    patched "$1" -R
    return "$status"
}

make_attack() {
    cmake --build "$build/tree" --target rlock_attack -j "$jobs" >"$build/log"
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

# The library as it is, under the faults of those patches that are for a home.
check_clean() { # HOME PATCH...
    home=$1
    shift
    for patch; do
        shift
        if [ "$(said at "$patch")" = "$home" ]; then
            set -- "$@" "$patch"
        fi
    done
    if [ $# -gt 0 ] && [ "${CLEAN:-}" != no ]; then
        check "nothing is found without a defect${home:+, $home}" \
            attack 1 240 10000 "$@"
    fi
}

if [ $# = 0 ]; then
    set -- "$plants"/*.patch
else
    names=$*
    set --
    for name in $names; do
        set -- "$@" "$plants/$name.patch"
    done
fi

# Whatever stops us before the first verdict is a failure, and is said so.
trap 'echo "0 passed, 1 failed"' EXIT

# One copy that is patched again and again: only what differs is rebuilt.
rm -rf "$build/source" "$build/tree"
mkdir "$build/source"
cp -R CMakeLists.txt include src lua tests "$build/source"
# shellcheck disable=SC2086
cmake -S "$build/source" -B "$build/tree" -DRLOCK_BUILD_TESTS=ON \
    -DRLOCK_BUILD_EXAMPLES=OFF -DRLOCK_INSTALL=OFF -DRLOCK_TEST_PLAIN=ON \
    ${CMAKE_ARGS:-}
make_attack
for home in '' $(said at "$@"); do
    check_clean "$home" "$@"
done
trap - EXIT
for plant; do
    name=${plant##*/}
    check "${name%.patch}" planted "$plant"
done

rm -rf "$build/out"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
