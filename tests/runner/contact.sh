#!/bin/sh
# contact.sh
#
# What a stranger sees who has nothing yet. Where he may install nothing, each thing
# that is missing has a line, and the last one says what is to be typed. How far a
# build or the tests are is counted, what fails is shown, and its status is kept.
set -eu

cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

die() {
    echo "contact.sh: $1" >&2
    cat "$work/said" >&2
    exit 1
}
# says LINE: one of the lines, as a whole
says() {
    grep -qx "$1" "$work/said" || die "not said: $1"
}
last_says() {
    tail -n 1 "$work/said" | grep -qx "$1" || die "not said last: $1"
}
# ends STATUS COMMAND...
ends() {
    wanted=$1 ended=0
    shift
    "$@" >"$work/said" 2>&1 || ended=$?
    [ "$ended" = "$wanted" ] || die "status $ended, not $wanted: $*"
}

# A machine without a compiler and without sudo.
mkdir "$work/bin"
for program in sh cat sed mktemp tail rm tr; do
    ln -s "$(command -v "$program")" "$work/bin/$program"
done
printf '#!/bin/sh\necho no network\nexit 1\n' >"$work/bin/apt-get"
printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"
chmod +x "$work/bin/apt-get" "$work/bin/id"
bare() {
    env -i PATH="$work/bin" sh ./deps.sh demo
}
ends 1 bare
says 'missing: cc (package gcc)'
says 'missing: hiredis/hiredis.h (package libhiredis-dev)'
says 'missing: redis-server (package redis-server)'
last_says 'Please install what is missing: sudo apt-get install gcc make cmake .* redis-tools'
# Nor with rights, where there is no network: apt's own words are in a log.
printf '#!/bin/sh\necho 0\n' >"$work/bin/id"
for program in env tee chmod; do
    ln -s "$(command -v "$program")" "$work/bin/$program"
done
sed 's|/usr/sbin/policy-rc.d|"'"$work"'/policy"|' deps.sh >"$work/deps.sh"
unreachable() {
    env -i PATH="$work/bin" TMPDIR="$work" sh "$work/deps.sh" demo
}
ends 1 unreachable
says 'no network'
says 'Installing: gcc make .*; what apt says: .*/rlock-apt\..*'
last_says 'Please install what is missing: sudo apt-get install gcc make cmake .* redis-tools'

built() {
    ./progress.sh built "$work/log" sh -c 'for n in 5 12 19 40 100; do
        echo "[ $n%] Building"; done; exit $0' "$1"
}
ends 0 built 0
[ "$(cat "$work/said")" = "$(printf 'built: %s %%\n' 12 40 100)" ] || die "counted otherwise"
ends 3 built 3
says "All that it said: $work/log"
tested() {
    ./progress.sh -v tests "$work/log" sh -c '
        echo " 1/2 Test #1: unit ....   Passed    0.10 sec"
        echo " 2/2 Test #2: fuzz ....***Failed    0.20 sec"
        echo "it has crashed"
        exit 8'
}
ends 8 tested
says 'tests: 1 of 2'
says 'it has crashed'
says '.*\*\*\*Failed .*'
! grep -q Passed "$work/said" || die "what has passed is shown"
