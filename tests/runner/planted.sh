#!/bin/sh
# planted.sh PROGRAM WITNESS
#
# The judge of the tests is judged: tap.sh runs tests that fail on purpose, with
# stalls that they make up. What fails without one has to fail at once, and what
# always fails has to fail, however many stalls there are.
set -eu

program=$1 witness=$2
tap=$(cd "$(dirname "$0")/.." && pwd)/tap.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM
bad=0

export PLANTED_DIR="$work/runs" PLANTED_REPORT="$work/san/reported.1"
mkdir "$PLANTED_DIR"

# expect WHAT GREP-OPTION... FILE
expect() {
    what=$1
    shift
    if ! grep -q "$@"; then
        echo "not so: $what"
        bad=1
    fi
}

run() { # NAME MODE COMMAND...
    name=$1 mode=$2
    shift 2
    "$tap" "$mode" "$name" 60 "$work" "$@" >"$work/$name.out" 2>&1 || :
}

# runs TEST N: so many times it has been run, all in all
runs() {
    [ "$(wc -c <"$PLANTED_DIR/test_planted_$1")" = "$2" ] || {
        echo "$1 did not run $2 times"
        bad=1
    }
}
passed() {
    expect "$1 has passed" -x "ok - planted::$1 .*" "$work/tap/$file.tap"
    runs "$1" 1
}
passed_again() { # TEST TIMES
    expect "$1 has passed, run again" \
        -x "ok - planted::$1 # AGAIN $2, .*" "$work/tap/$file.tap"
    runs "$1" $(($2 + 1))
}
failed() { # TEST RUNS
    expect "$1 has failed" "^not ok - planted::$1[ ,]" "$work/tap/$file.tap"
    runs "$1" "$2"
}

# One at a time, so that each stall is beside one test only.
file=all
run all tap "$program" --filter='planted/!(is_reported*)' --jobs=1
passed passes
passed passes_beside_a_stall
expect 'is_skipped is skipped' '^ok - planted::is_skipped .*# SKIP' \
    "$work/tap/all.tap"
failed fails 1
failed fails_beside_a_short_stall 1
failed fails_before_a_stall 1
failed fails_once_more_without_a_stall 2
failed fails_beside_stalls 3
failed crashes_beside_a_stall 1
failed crashes_where_it_has_failed 1
failed exits_beside_a_stall 1
passed_again fails_once_beside_a_stall 1
passed_again fails_once_with_a_small_lease 1
passed_again fails_once_on_another_thread 1
passed_again fails_twice_beside_stalls 2
passed_again fails_once_in_the_midst_of_things 1
if grep 'sanitizer report' "$work/tap/all.tap"; then
    echo 'not so: what failed tests have left is no report'
    bad=1
fi

file=reported
run reported tap "$program" --filter='planted/is_reported*' --jobs=1
passed_again is_reported_when_it_is_run_again 1
expect 'a report is a failure' '^not ok - reported: sanitizer report' \
    "$work/tap/reported.tap"

killed='==1==Unable to get registers from thread 2.'
run unseen status sh -c 'echo "$2" >"$1"' - "$work/san/unseen.1" "$killed"
expect 'that a process was killed as it was looked at is no report' \
    '^ok - unseen' "$work/tap/unseen.tap"
run leaky status sh -c 'printf "%s\n" "$2" "1 byte leaked" >"$1"' - \
    "$work/san/leaky.1" "$killed"
expect 'what is said besides is one' '^not ok - leaky: sanitizer report' \
    "$work/tap/leaky.tap"

# As a whole, by its status.
# shellcheck disable=SC2016
twice='echo . >>"$PLANTED_DIR/$1"
    [ $(wc -l <"$PLANTED_DIR/$1") -gt "$2" ] && exit
    if [ "$3" -gt 0 ]; then echo "stall 1 ${3}001" >>"$RLOCK_TEST_LOG"; fi
    exit "$4"'
run s1 status sh -c "$twice" - s1 2 100 1
expect 'a program is run again twice' -x 'ok - s1 # AGAIN 2, .*' \
    "$work/tap/s1.tap"
run s2 status sh -c "$twice" - s2 3 100 1
expect 'and no more' '^not ok - s2' "$work/tap/s2.tap"
run s3 status sh -c "$twice" - s3 1 0 1
expect 'not without a stall' '^not ok - s3' "$work/tap/s3.tap"
run s4 status sh -c "$twice" - s4 1 100 139
expect 'not when it has crashed' '^not ok - s4' "$work/tap/s4.tap"

mkdir "$work/tests"
ln -s "$witness" "$work/tests/witness"
run seen tap "$program" --filter='witnessed/*' --jobs=1
expect 'the witness has seen a stall' \
    '^ok - witnessed::fails_once_beside_a_stall # AGAIN' "$work/tap/seen.tap"

[ "$bad" = 0 ] || {
    cat "$work"/*.out "$work"/tap/*.tap
    exit 1
}
