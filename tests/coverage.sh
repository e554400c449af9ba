#!/bin/sh
# coverage.sh
#
# Builds the library with counters, runs every test (run.sh), and tells which part of
# the lines and branches of src/ has run; fails below what is asked for. What
# has not run is listed, and kept with the branches in BUILD_DIR/uncovered.txt.
# Closes with "N passed, N failed".
#
# A branch is one outcome of a condition in the source: each of a && b counts
# by itself, and nothing does that only the compiler sees. The counters live in
# files that are mapped by all processes, so that those count that end by
# _exit() or by a signal. These are in memory, if /dev/shm is there: where a
# busy disk has them, to count takes up to a second now and then, and the tests
# are about time.
#
#   BUILD_DIR   where to build; build-coverage
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   JOBS        how much at a time
set -eu

cd "$(dirname "$0")/.."
build=$(realpath -m "${BUILD_DIR:-build-coverage}")
least_lines=90 least_branches=80

counts=$(mktemp -d /dev/shm/rlock.XXXXXX 2>/dev/null || mktemp -d)

# Whatever stops us before there are figures is a failure, and is said so.
trap 'rm -rf "$counts"; echo "0 passed, 1 failed"' EXIT
trap 'exit 143' HUP INT TERM

tests/deps.sh coverage
mkdir -p "$build"
CC=clang BUILD_DIR=$build LLVM_PROFILE_FILE=$counts/%m%c.profraw \
    CMAKE_ARGS="-DRLOCK_COVERAGE=ON -DRLOCK_BUILD_BENCH=OFF \
    -DRLOCK_TEST_PLAIN=ON ${CMAKE_ARGS:-}" \
    tests/run.sh | tee "$build/tests.log"
tests=$(tail -n 1 "$build/tests.log")

llvm-profdata merge -o "$build/counts.profdata" "$counts"/*.profraw
find "$PWD/src" -name '*.[ch]' ! -path '*/src/cli/*' -print0 | sort -z |
    xargs -0 llvm-cov export -format=lcov "$build/librlock.so" \
        -instr-profile "$build/counts.profdata" >"$build/counts.lcov"

trap 'rm -rf "$counts"' EXIT
echo
awk -F '[:,]' -v root="$PWD/" -v list="$build/uncovered.txt" -v tests="$tests" \
    -v least_lines="$least_lines" -v least_branches="$least_branches" '
    function percent(hit, all) {
        return all ? 100 * hit / all : 100
    }
    function row(name, l, lh, b, bh) {
        printf "%-28s %5d lines, %6.2f %%   %5d branches, %6.2f %%\n",
            name, l, percent(lh, l), b, percent(bh, b)
    }
    function end_range() {
        if (from)
            print file ":" (from < to ? from "-" to : from) ": not run" >list
        from = 0
    }
    function judge(what, have, least) {
        if (have >= least) {
            passed++
        } else {
            failed++
            printf "FAILED: %.2f %% of the %s, of %d %%\n", have, what, least
        }
    }
    BEGIN { printf "" >list }
    /^SF:/ {
        file = substr($0, 4)
        sub("^" root, "", file)
        l = lh = b = bh = from = 0
    }
    /^DA:/ {
        l++
        lh += $3 > 0
        if ($3 > 0) {
            end_range()
        } else {
            if (!from)
                from = $2
            to = $2
        }
    }
    /^BRDA:/ {
        b++
        bh += $5 > 0
        if ($5 + 0 == 0)
            print file ":" $2 ": condition " int($4 / 2) + 1 " was never " \
                ($4 % 2 ? "false" : "true") >list
    }
    /^end_of_record/ {
        end_range()
        if (l)
            row(file, l, lh, b, bh)
        L += l; LH += lh; B += b; BH += bh
    }
    END {
        row("all", L, LH, B, BH)
        close(list)
        print "\nLines that have not run (branches are in " list "):"
        while ((getline line <list) > 0) {
            if (line ~ /not run$/)
                print "  " line
        }
        print ""
        judge("lines", percent(LH, L), least_lines)
        judge("branches", percent(BH, B), least_branches)
        passed += tests
        sub(/.*passed, /, "", tests)
        failed += tests
        print passed + 0 " passed, " failed + 0 " failed"
        exit failed > 0
    }' "$build/counts.lcov"
