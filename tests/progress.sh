#!/bin/sh
# progress.sh [-v] WHAT LOG COMMAND [ARGUMENT]...
#
# Runs a build, or ctest, whose words go into LOG, and shows how far it is: on a
# terminal a counter that is redrawn, else a line for each tenth. With -v all that is
# no progress is shown as well, such as a test that has failed; without it, the end of
# LOG, if the command fails. Ends with its status.
set -u

others=
if [ "$1" = -v ]; then
    others=yes
    shift
fi
what=$1 log=$2
shift 2
redraw=
if [ -t 1 ]; then
    redraw=yes
fi
mkdir -p "$(dirname "$log")"
status=$(mktemp "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -f "$status"' EXIT
trap 'exit 143' HUP INT TERM

{
    "$@" </dev/null 2>&1
    echo $? >"$status"
} | tee "$log" | awk -v what="$what" -v redraw="$redraw" -v others="$others" '
    function told(how_far, part) {
        if (redraw) {
            printf "\r%s: %s\033[K", what, how_far
            drawn = 1
        } else if (int(10 * part) > tenth) {
            print what ": " how_far
            tenth = int(10 * part)
        }
        fflush()
    }
    function told_of(counter,   n) {
        split(counter, n, "/")
        told((n[1] + 0) " of " (n[2] + 0), n[1] / n[2])
    }
    # "[ 45%] Building ..." of make, "[12/300] Building ..." of ninja
    /^\[ *[0-9]+%\]/ {
        n = substr($0, 2) + 0
        told(n " %", n / 100)
        next
    }
    /^\[[0-9]+\/[0-9]+\]/ { told_of(substr($0, 2)); next }
    # " 12/300 Test  #7: unit ....   Passed    0.10 sec" of ctest
    /^ *[0-9]+\/[0-9]+ Test/ {
        told_of($1)
        if (/Passed/) next
    }
    /^ *Start +[0-9]+:/ { next }
    others {
        if (drawn) printf "\r\033[K"
        drawn = 0
        print
        fflush()
    }
    END { if (drawn) print "" }'

read -r ended <"$status" || ended=1
if [ "$ended" != 0 ] && [ -z "$others" ]; then
    tail -n 30 "$log" >&2
    echo "This failed: $*" >&2
    echo "All that it said: $log" >&2
fi
exit "$ended"
