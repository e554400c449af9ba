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
set -eu

mode=$1 name=$2 seconds=$3 build=$4
shift 4
mkdir -p "$build/tap" "$build/san"
tap=$build/tap/$name.tap
san=$build/san/$name
rm -f "$tap.new" "$tap.out" "$san".*
# Stands if we are killed.
printf '1..1\nnot ok - %s: did not end\n' "$name" >"$tap"

log=log_path=$san
export ASAN_OPTIONS="$log:detect_stack_use_after_return=1"
export LSAN_OPTIONS="$log"
export UBSAN_OPTIONS="$log:print_stacktrace=1"
export TSAN_OPTIONS="$log:second_deadlock_stack=1"

if [ "$mode" = tap ]; then
    set -- "$@" "--tap=$tap.new"
fi
status=0
if [ "$mode" = status ]; then
    timeout -k 5 "$seconds" "$@" >"$tap.out" 2>&1 || status=$?
    cat "$tap.out"
    last=$(tail -n 1 "$tap.out")
    rm "$tap.out"
else
    timeout -k 5 "$seconds" "$@" || status=$?
fi

not_ok() {
    printf 'not ok - %s: %s\n' "$name" "$1" >>"$tap.new"
}
count() {
    grep -Ec "$1" "$tap.new" || :
}

case $status in
0) why= ;;
124 | 137) why="not done after $seconds s" ;;
*) why="exit status $status" ;;
esac
if [ "$mode" = status ] && [ "$status" = 77 ]; then
    printf '1..1\nok - %s # SKIP %s\n' "$name" "$last" >"$tap.new"
elif [ "$mode" = status ] && [ -z "$why" ]; then
    printf '1..1\nok - %s\n' "$name" >"$tap.new"
elif [ ! -e "$tap.new" ]; then
    not_ok "${why:-no TAP file}"
else
    planned=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$tap.new")
    ran=$(count '^(not )?ok')
    if [ "$ran" -lt "${planned:-1}" ]; then
        not_ok "$ran of ${planned:-?} tests ran${why:+; $why}"
    elif [ -n "$why" ] && [ "$(count '^not ok')" = 0 ]; then
        not_ok "$why"
    fi
fi
for report in "$san".*; do
    if [ -e "$report" ]; then
        not_ok "sanitizer report $report"
        cat "$report"
    fi
done
mv "$tap.new" "$tap"
! grep '^not ok' "$tap"
