#!/bin/sh
# run.sh [--quick]
#
# Builds everything and runs every test, from a fresh clone on: what is missing
# is installed first. Closes with "N passed, N failed", and says how many of those
# that passed were run again because the machine had stood still (tap.sh). --quick: only
# what a fresh build on a new machine has to show, in a minute.
#
#   BUILD_DIR   where to build; build
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   CC          the compiler, for a new BUILD_DIR
#   JOBS        how much at a time
#   TESTS       only programs whose names match, such as '^(unit|server)[.]'
#   EXCEPT      and none of those whose names match this
set -eu

cd "$(dirname "$0")/.."
case $* in
'') tests=${TESTS:-.} ;;
--quick)
    tests='^(unit[.].*|server[.](lock|lease|loss|waiting|threads|client|events)|example[.](basic|nested)|includes|lines|words|readme|figures)$'
    ;;
*)
    echo "usage: run.sh [--quick]" >&2
    exit 2
    ;;
esac
build=${BUILD_DIR:-build}
jobs=${JOBS:-$(nproc)}

# seen WHAT LOG COMMAND...: who sits at a terminal sees how far it is; a log has all
seen() {
    if [ -t 1 ]; then
        tests/progress.sh "$@"
    else
        shift 2
        "$@"
    fi
}

# Its last line says what is missing, and how to come by it.
tests/deps.sh test
# Whatever else stops us before the tests have run is a failure, and is said so.
trap 'echo "0 passed, 1 failed"' EXIT
# shellcheck disable=SC2086
seen configured "$build/build.log" cmake -S . -B "$build" \
    -DRLOCK_BUILD_TESTS=ON -DRLOCK_BUILD_EXAMPLES=ON ${CMAKE_ARGS:-}
seen built "$build/build.log" cmake --build "$build" -j "$jobs"

rm -rf "$build/tap" "$build/san"
# Criterion by itself runs as many tests at a time as there are processors; a
# few programs beside each other fill the pauses.
ctest=0
set -- sh -c 'cd "$1" && shift && exec ctest "$@"' sh "$build" \
    -j "$((jobs < 4 ? jobs : 4))" --output-on-failure -R "$tests" ${EXCEPT:+-E "$EXCEPT"}
if [ -t 1 ]; then
    tests/progress.sh -v 'programs of tests' "$build/tests.log" "$@" || ctest=$?
else
    "$@" || ctest=$?
fi

trap - EXIT
mkdir -p "$build/tap"
echo
set -- "$build"/tap/*.tap
if [ ! -e "$1" ]; then
    echo "0 passed, 1 failed"
    exit 1
fi
# CTest alone fails when a program could not even be started.
awk -v ctest="$ctest" '
    function line(p, f, s, a) {
        return p + 0 " passed, " f + 0 " failed" (s ? ", " s " skipped" : "") \
            (a ? ", " a " run again" : "")
    }
    FNR == 1 {
        suite = FILENAME
        sub(/.*\//, "", suite)
        sub(/\.tap$/, "", suite)
        suites[++n] = suite
    }
    /^ok.*# SKIP/ {
        skipped++
        s[suite]++
        sub(/^ok - /, "skipped: ")
        sub(/ *# SKIP */, ": ")
        print
        next
    }
    /^ok.*# AGAIN/ {
        again++
        a[suite]++
        told = $0
        sub(/^ok - /, "run again: ", told)
        sub(/ *# AGAIN */, ": ", told)
        print told
    }
    /^ok/         { passed++; p[suite]++ }
    /^not ok/     { failed++; f[suite]++ }
    END {
        for (i = 1; i <= n; i++)
            printf "%-32s %s\n", suites[i],
                line(p[suites[i]], f[suites[i]], s[suites[i]], a[suites[i]])
        if (ctest && !failed)
            failed = 1
        print line(passed, failed, skipped, again)
        exit failed || !passed
    }' "$@"
