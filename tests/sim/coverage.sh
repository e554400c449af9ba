#!/bin/sh
# coverage.sh [--from N] [--seeds M]
#
# Which part of the library's lines runs in M seeds (10000) from N (1) on? Told for
# each folder of src/; fails where less than is asked for has run: of all of it, and
# of run/, net/ and route/, where net/ is counted without TLS' files of its own,
# of which seeds see the smaller part. Which lines have not run is in
# BUILD_DIR/uncovered.txt. Closes with "N passed, N failed".
#
#   BUILD_DIR   where to build; build-sim-coverage
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   JOBS        how many seeds at a time
set -eu

cd "$(dirname "$0")/../.."
build=$(realpath -m "${BUILD_DIR:-build-sim-coverage}")
jobs=${JOBS:-$(nproc)}
from=1 seeds=10000
while [ $# -gt 1 ]; do
    case $1 in
    --from) from=$2 ;;
    --seeds) seeds=$2 ;;
    *) break ;;
    esac
    shift 2
done
if [ $# -gt 0 ]; then
    sed -n '2s/^# /usage: /p' "$0" >&2
    exit 2
fi

# Whatever stops us before there are figures is a failure, and is said so.
counts=$(mktemp -d /dev/shm/rlock.XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$counts"; echo "0 passed, 1 failed"' EXIT
trap 'exit 143' HUP INT TERM

tests/deps.sh sim
tests/deps.sh coverage
# shellcheck disable=SC2086
CC=clang cmake -S . -B "$build" -DRLOCK_BUILD_SIM=ON -DRLOCK_BUILD_TESTS=OFF \
    -DRLOCK_BUILD_EXAMPLES=OFF -DRLOCK_INSTALL=OFF -DRLOCK_COVERAGE=ON \
    ${CMAKE_ARGS:-} >"$build.log"
cmake --build "$build" --target rlock_sim -j "$jobs" >>"$build.log"

# Counters are in files that all processes map: seeds end without saying so.
i=0
while [ "$i" -lt "$jobs" ]; do
    first=$((seeds * i / jobs))
    next=$((seeds * (i + 1) / jobs))
    i=$((i + 1))
    LLVM_PROFILE_FILE=$counts/%m%c.profraw "$build/tests/sim/sim" \
        --from $((from + first)) --seeds $((next - first)) \
        >"$build/seeds.$i.log" &
done
wait
grep -h '^seed' "$build"/seeds.*.log || :

llvm-profdata merge -o "$build/counts.profdata" "$counts"/*.profraw
find "$PWD/src" -name '*.[ch]' -print0 | sort -z |
    xargs -0 llvm-cov export -format=lcov "$build/tests/sim/sim" \
        -instr-profile "$build/counts.profdata" >"$build/counts.lcov"

trap 'rm -rf "$counts"' EXIT
awk -F '[:,]' -v root="$PWD/src/" -v list="$build/uncovered.txt" \
    -v tests="$(cat "$build"/seeds.*.log | grep 'passed,')" '
    function percent(name) {
        return all[name] ? 100 * hit[name] / all[name] : 0
    }
    function judge(name, least) {
        printf "%-16s %5d lines, %5.1f %%, of %d asked for\n", name,
            all[name], percent(name), least
        if (percent(name) >= least)
            passed++
        else
            failed++
    }
    BEGIN { printf "" >list }
    /^SF:/ {
        file = substr($0, 4)
        sub("^" root, "", file)
        folder = file
        sub("/.*", "", folder)
        if (file ~ /^net\/tls/)
            folder = "net, of TLS"
    }
    /^DA:/ {
        all[folder]++
        all["all"]++
        hit[folder] += $3 > 0
        hit["all"] += $3 > 0
        if ($3 == 0)
            print file ":" $2 >list
    }
    END {
        for (name in all)
            if (name !~ /^(all|run|net|route)$/)
                printf "%-16s %5d lines, %5.1f %%\n", name, all[name],
                    percent(name)
        judge("run", 90)
        judge("net", 90)
        judge("route", 90)
        judge("all", 85)
        n = split(tests, line, "\n")
        for (i = 1; i <= n; i++) {
            passed += line[i]
            sub(/.*passed, /, "", line[i])
            failed += line[i]
        }
        print passed + 0 " passed, " failed + 0 " failed"
        exit failed > 0
    }' "$build/counts.lcov"
