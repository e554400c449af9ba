#!/bin/sh
# tap.sh tap|status NAME SECONDS BUILD COMMAND [ARGUMENT]...
#
# Runs one test program and leaves BUILD/tap/NAME.tap behind, which tells the
# whole truth: also that the program crashed, hung, stopped half-way, or got a
# report from a sanitizer. Test frameworks look at none of these well enough;
# Criterion, for one, passes a test whose process leaks.
#
# tap     the command writes the file itself, told by --tap=FILE
# status  the command's exit status is the result; 77 means skipped, and the
#         last line it printed says why
#
# Tests are about time, and a machine that runs nobody for a while breaks what no
# library could keep. runner/witness.c notes such stalls, and the tests note when
# they begin and fail (support/test.c), all in one log. A test that failed beside
# a stall of more than a fourth of its smallest lease is run again, by itself, at
# most twice; it fails when it fails three times, or once without such a stall. A
# crash, a report of a sanitizer, and a program that does not end are never
# excused. What was run again says so in the TAP file, and how it failed is in
# BUILD/tap/NAME.again.
set -eu

mode=$1 name=$2 seconds=$3 build=$4
shift 4
mkdir -p "$build/tap" "$build/san"
tap=$build/tap/$name.tap
san=$build/san/$name
log=$build/tap/$name.log
lease_ms=300 # of what has no tests that say theirs
most=2
rm -f "$tap".* "$build/tap/$name.again" "$log" "$san".*
# Stands if we are killed.
printf '1..1\nnot ok - %s: did not end\n' "$name" >"$tap"

path=log_path=$san
export ASAN_OPTIONS="$path:detect_stack_use_after_return=1"
export LSAN_OPTIONS="$path"
export UBSAN_OPTIONS="$path:print_stacktrace=1"
export TSAN_OPTIONS="$path:second_deadlock_stack=1"
export RLOCK_TEST_LOG="$log"

# witnessed COMMAND...: what it returned is in status
witnessed() {
    rm -f "$log"
    status=0
    if [ -x "$build/tests/witness" ]; then
        set -- "$build/tests/witness" "$log" "$@"
    fi
    timeout -k 5 "$seconds" "$@" || status=$?
    touch "$log"
}

# excuse LOG TEST: the longest stall in ms beside a failure of the test, if it is
# long enough. A test that has only begun did not end in time.
excuse() {
    awk -v test="$2" '
        $1 == "began" && $4 == test { from = $2; lease = $3; to = 0 }
        $1 == "lease" && $3 == test && $2 < lease { lease = $2 }
        $1 == "failed" && $3 == test && !to { to = $2 }
        $1 == "stall" { begins[++n] = $2; ends[n] = $3 }
        END {
            for (i = 1; i <= n; i++) {
                stall = (ends[i] - begins[i]) / 1000
                if (ends[i] > from && (!to || begins[i] < to) && stall > most)
                    most = stall
            }
            if (from && most > lease / 4)
                printf "%d\n", most
        }' "$1"
}

not_ok() {
    printf 'not ok - %s: %s\n' "$name" "$1" >>"$tap.new"
}
count() {
    grep -Ec "$1" "$tap.new" || :
}

# --- tap ---------------------------------------------------------------------

# Those that failed by an assertion, or timed out: no crash ("unexpected signal").
failed_tests() { # LOG TAP
    awk '
        FILENAME == ARGV[1] { asserted[$3] = $1 == "failed" || asserted[$3] }
        /^not ok - [^ ]*::/ && FILENAME != ARGV[1] {
            if (asserted[$4] && $5 != "unexpected" || $5 == "timed")
                print $4
        }' "$1" "$2"
}

# In place of its line: what is said of it now.
instead() { # TEST LINE
    awk -v test="$1" -v line="$2" '
        $1 == "not" && $4 == test { print line; next }
        { print }' "$tap.new" >"$tap.edited"
    mv "$tap.edited" "$tap.new"
}

# run_again TEST STALL COMMAND...: until it passes, or has no excuse.
run_again() {
    test=$1 stall=$2 again=0
    shift 2
    while [ -n "$stall" ] && [ "$again" -lt "$most" ] &&
        [ "$(date +%s)" -lt "$end" ]; do
        again=$((again + 1))
        rm -f "$tap.again"
        witnessed "$@" --filter="$(echo "$test" | sed 's,::,/,')" \
            --tap="$tap.again"
        if [ "$status" = 0 ] && grep -q "^ok - $test " "$tap.again"; then
            instead "$test" \
                "ok - $test # AGAIN $again, beside a stall of $stall ms"
            return
        fi
        cat "$tap.again" >>"$build/tap/$name.again" 2>/dev/null || :
        stall=
        if [ "$(failed_tests "$log" "$tap.again")" = "$test" ]; then
            stall=$(excuse "$log" "$test")
        fi
    done
    if [ "$again" -gt 0 ]; then
        instead "$test" "not ok - $test, also when it was run again"
    fi
}

run_tap() {
    witnessed "$@" --tap="$tap.new"
    case $status in
    0) why= ;;
    124 | 137) why="not done after $seconds s" ;;
    *) why="exit status $status" ;;
    esac
    if [ ! -e "$tap.new" ]; then
        not_ok "${why:-no TAP file}"
        return
    fi
    planned=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$tap.new")
    ran=$(count '^(not )?ok')
    if [ "$ran" -lt "${planned:-1}" ]; then
        not_ok "$ran of ${planned:-?} tests ran${why:+; $why}"
        return
    elif [ -n "$why" ] && [ "$(count '^not ok')" = 0 ]; then
        not_ok "$why"
        return
    fi
    for test in $(failed_tests "$log" "$tap.new"); do
        printf '%s %s\n' "$test" "$(excuse "$log" "$test")"
    done >"$tap.failed"
    while read -r test stall; do
        if [ -n "$stall" ]; then
            cat "$tap.new" >"$build/tap/$name.again"
        fi
        run_again "$test" "$stall" "$@" </dev/null
    done <"$tap.failed"
}

# --- status ------------------------------------------------------------------

run_once() {
    witnessed "$@" >"$tap.out" 2>&1
    cat "$tap.out"
    last=$(tail -n 1 "$tap.out")
    # All of it is one test; what a signal ended has crashed.
    if [ "$status" -lt 124 ]; then
        printf 'began 1 %s %s\n' "$lease_ms" "$name" >>"$log"
    fi
}

run_status() {
    again=0 beside=
    run_once "$@"
    while [ "$status" != 0 ] && [ "$status" != 77 ] &&
        [ "$again" -lt "$most" ] && [ "$(date +%s)" -lt "$end" ]; do
        stall=$(excuse "$log" "$name")
        [ -n "$stall" ] || break
        again=$((again + 1))
        beside=" # AGAIN $again, beside a stall of $stall ms"
        cat "$tap.out" >>"$build/tap/$name.again"
        run_once "$@"
    done
    case $status in
    0) printf '1..1\nok - %s%s\n' "$name" "$beside" >"$tap.new" ;;
    77) printf '1..1\nok - %s # SKIP %s\n' "$name" "$last" >"$tap.new" ;;
    124 | 137) not_ok "not done after $seconds s" ;;
    *) not_ok "exit status $status" ;;
    esac
}

# -----------------------------------------------------------------------------

# Nothing is run again later than this.
end=$(($(date +%s) + seconds))
"run_$mode" "$@"
# LSan stops a process to look for leaks; one that is killed just then cannot be
# looked at, and if it says no more that is no finding.
killed='Unable to get registers from thread'
for report in "$san".*; do
    if [ -e "$report" ] && { [ ! -s "$report" ] || grep -qv "$killed" "$report"; }; then
        not_ok "sanitizer report $report"
        cat "$report"
    fi
done
mv "$tap.new" "$tap"
rm -f "$tap".* "$log"
! grep '^not ok' "$tap"
