#!/usr/bin/env bash
# run.sh [NAME]...
#
# Checks the protocol's model: every state that each configuration below can
# reach, and that a counterexample is found for each planted defect. Tells how
# many states there were and how long it took, and closes with "N passed, N
# failed". With names, only those.
#
# A search that was cut short, by depth, memory or time, has shown nothing, and
# is a failure; so is a planted defect that the search ends without.
#
#   BUILD_DIR   where to build; build-model
#   LIMIT       seconds of the processor for each; 90
#   EXCEPT      names of what to leave out
set -eu -o pipefail

cd "$(dirname "$0")/../.."
build=$(realpath -m "${BUILD_DIR:-build-model}")
model=$PWD/tests/model
limit=${LIMIT:-90}
passed=0 failed=0
order= # of the search; another one may find a defect sooner
level= # of optimization: to compile takes as long as many a search
kind=SAFETY # or NP, to look for runs without an end

# Whatever stops us before that is a failure, and is said so.
trap 'echo "0 passed, 1 failed"' EXIT

tests/deps.sh model
wanted=" $* "

# verifier NAME FILE [MACRO]...: makes the program that searches
verifier() {
    local dir=$build/$1 file=$2
    shift 2
    rm -rf "$dir"
    mkdir -p "$dir"
    cd "$dir"
    # shellcheck disable=SC2086
    spin -a "${@/#/-D}" "$model/$file" >spin.log 2>&1 &&
        cc "$level" "-D$kind" $order -DNOREDUCE -DVECTORSZ=2048 -DMEMLIM=4000 \
            -o pan pan.c >cc.log 2>&1
}

# Sets states, seconds and errors; errors is empty unless the search came to an
# end by itself, with a counterexample or with all states.
search() {
    local status=0
    (
        ulimit -t "$limit"
        TIMEFORMAT='%U user'
        loops=()
        [ "$kind" = SAFETY ] || loops=(-l)
        time ./pan "${loops[@]}" -m200000 -w22
    ) >log 2>&1 || status=$?
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' log)
    seconds=$(sed -n 's/^\([0-9.]*\) user$/\1/p' log)
    errors=$(sed -n 's/^State-vector.*errors: \([0-9]*\)$/\1/p' log)
    if grep -qE 'max search depth too small|Search not completed|truncated' \
        log && [ "$errors" = 0 ]; then
        errors=
    fi
    if [ "$status" != 0 ] && [ "$errors" = 0 ]; then
        errors=
    fi
}

tell() {
    local result=$1 name=$2
    if [ "$result" = ok ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
    printf '%-20s %10s states %7s s  %s\n' "$name" "${states:--}" \
        "${seconds:--}" "$3"
}

is_wanted() {
    [[ " ${EXCEPT:-} " != *" $1 "* ]] &&
        { [ "$wanted" = '  ' ] || [[ $wanted == *" $1 "* ]]; }
}

# holds NAME FILE [MACRO]...: no reachable state breaks a property
holds() {
    is_wanted "$1" || return 0
    states='' seconds='' errors='' level=-Og
    if ! verifier "$@"; then
        cat "$build/$1"/*.log
        tell bad "$1" 'FAILED: it cannot be built'
        return
    fi
    cd "$build/$1"
    search
    if [ "$errors" = 0 ]; then
        tell ok "$1" 'every state is good'
    elif [ -z "$errors" ]; then
        tell bad "$1" 'FAILED: the search was cut short'
    else
        grep '^pan:1:' log
        tell bad "$1" "FAILED: (cd $build/$1 && ./pan -r)"
    fi
}

# broken NAME FILE [MACRO]...: the planted defect is found
broken() {
    is_wanted "$1" || return 0
    states='' seconds='' errors='' level=-O0
    if ! verifier "$@"; then
        cat "$build/$1"/*.log
        tell bad "$1" 'FAILED: it cannot be built'
        return
    fi
    cd "$build/$1"
    search
    if [ "${errors:-0}" -gt 0 ] && grep -q '^pan:1: \(assert\|invalid\)' log; then
        tell ok "$1" "found: $(sed -n 's/^pan:1: \([a-z ]*\).*/\1/p' log)"
    else
        tell bad "$1" 'FAILED: the planted defect was not found'
    fi
}

# One server.
holds late single.pml LATE=1 RENEWALS=1
holds reentry single.pml LATE=1 LEVELS=2 RENEWALS=1
holds extend single.pml LATE=1 EXTENDS=2 RENEWALS=1
holds wipe-or-force single.pml LATE=1 WIPES=1 RENEWALS=1
holds queue-crash single.pml WAITS PROGRESS CRASHES=1 RENEWALS=1
# None of these runs is endless, so each waiter gets the lock, or its time-out.
kind=NP
holds queue-ends single.pml WAITS PROGRESS STRANGER=2 RENEWALS=0
kind=SAFETY
holds queue-lost single.pml WAITS PROGRESS LOST=1 STRANGER=2 RENEWALS=0

# A release grants, and tells it by a message.
holds grants single.pml WAITS GRANTS STRANGER=2 RENEWALS=0
holds grants-late single.pml WAITS GRANTS LATE=1 RENEWALS=0
holds grants-crash single.pml WAITS GRANTS CRASHES=1 RENEWALS=0
holds grants-wake single.pml WAITS PROGRESS GRANTS STRANGER=2 RENEWALS=0

broken grant-from-message single.pml WAITS GRANTS RENEWALS=0 GRANT_FROM_MESSAGE
broken grant-kept single.pml WAITS GRANTS RENEWALS=0 KEEPS_GRANT
broken no-tombstone single.pml LATE=1 RENEWALS=1 NO_TOMBSTONE
broken late-renewal single.pml RENEWALS=1 LATE_REVIVES
broken from-answer single.pml RENEWALS=1 FROM_ANSWER
broken no-margin single.pml RENEWALS=1 NO_MARGIN
broken no-compare single.pml LATE=1 WIPES=1 RENEWALS=1 NO_COMPARE
broken no-cap single.pml LATE=1 EXTENDS=2 RENEWALS=1 NO_CAP
broken ring-swallowed single.pml WAITS PROGRESS STRANGER=2 RENEWALS=0 \
    SWALLOW_RING

# Hand-overs inside a client, and turns.
holds handover handover.pml LATE=2 LOST=2
holds turn handover.pml LATE=2 LOST=1 KEPT=2

broken hand-no-tombstone handover.pml LATE=1 LOST=1 NO_TOMBSTONE
broken hand-blind handover.pml LATE=1 LOST=1 BLIND_HAND
broken hand-asks-anew handover.pml LATE=1 LOST=1 ASKS_ANEW
broken turn-not-kept handover.pml LATE=1 LOST=1 KEPT=2 NOT_KEPT

# A latch.
holds latch latch.pml LOST=3 LATE=2
holds latch-deaf latch.pml LOST=1 LATE=1 RINGS=2

broken latch-no-mark latch.pml LOST=1 NO_MARK
broken latch-rings-one latch.pml RINGS_ONE
broken latch-looks-first latch.pml LOOKS_FIRST

# A fair lock's line.
holds line-late line.pml LOST=1 LATE=1 SIGNS=1 QUITS=1
holds line-deaf line.pml CUTS=1 SIGNS=1 QUITS=1
holds line-refused line.pml REFUSED=1 CRASHES=1 QUITS=1
holds line-claim line.pml TIME OWNERS=2 LOST=1 LATE=1 DOUBLED=1 QUITS=1

broken line-no-tombstone line.pml LOST=1 LATE=1 QUITS=1 NO_TOMBSTONE
broken line-message-first line.pml REFUSED=1 MESSAGE_WITHOUT_HOLD
broken line-unheard-kept line.pml CRASHES=1 UNHEARD_KEPT
broken line-from-message line.pml TIME OWNERS=2 DEADLINE_FROM_MESSAGE
broken line-sleeps-on line.pml SIGNS=1 DROPPED_STANDS_NOT

# Three servers.
holds red-late red.pml LATE=1
holds red-crash red.pml CRASHES=1
holds red-restart red.pml RESTARTS=1
holds red-revote red.pml RENEWALS=1 REVOTES=1
holds red-extend red.pml RENEWALS=1 EXTENDS=1

broken red-no-tombstone red.pml LATE=1 NO_TOMBSTONE
broken red-no-raise red.pml NO_RAISE
broken red-no-cap red.pml RENEWALS=1 EXTENDS=1 NO_CAP
order='-DREVERSE -DT_REVERSE'
broken red-votes-at-once red.pml RESTARTS=1 VOTES_AT_ONCE
order=

trap - EXIT
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
