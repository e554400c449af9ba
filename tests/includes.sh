#!/bin/sh
# includes.sh [SOURCE]
#
# Reads which folder of src/ includes which, and complains of each include that
# goes up, and of folders that include each other. What it would complain about
# is then done to copies of a small tree, and each time it must complain of
# that, and of nothing else.
set -eu

LC_ALL=C
export LC_ALL
source=${1:-$(dirname "$0")/../src}
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

# A folder, and what it may include besides itself. Files outside of any folder
# may include all.
arrows='
base
wire   base
net    base wire
core   base wire
route  base wire net
drive  base wire net core route
lock   base wire net core route drive
'

# compare SOURCE: complaints, a line each
compare() {
    (cd "$1" && find . -name '*.[ch]' | sort |
        xargs grep -H '^[ 	]*#[ 	]*include[ 	]*"' /dev/null) |
        awk -F: -v arrows="$arrows" '
        BEGIN {
            n = split(arrows, rows, "\n")
            for (i = 1; i <= n; i++) {
                m = split(rows[i], word, " ")
                for (k = 1; k <= m; k++) {
                    known[word[1]]
                    may[word[1], word[k]]
                }
            }
        }
        # Who reaches from, now reaches to, and all that to reaches.
        function arrow(from, to, i, k) {
            for (i in known)
                for (k in known)
                    if ((i == from || (i, from) in there) &&
                        (k == to || (to, k) in there))
                        there[i, k]
        }
        {
            file = substr($1, 3)
            split($2, quoted, "\"")
            header = quoted[2]
            from = to = ""
            if (file ~ /\//)
                from = substr(file, 1, index(file, "/") - 1)
            if (header ~ /\//)
                to = substr(header, 1, index(header, "/") - 1)
            if (from != "" && !(from in known))
                strange[from]
            else if (to == "") # of its own folder, or generated
                next
            else if (!(to in known))
                print file " includes " header ", of an unknown folder"
            else if (from != "" && !((from, to) in may))
                print file " includes " header
            if (from in known && to in known)
                arrow(from, to)
        }
        END {
            for (i in strange)
                print i " is an unknown folder"
            for (i in known)
                for (k in known)
                    if (i < k && (i, k) in there && (k, i) in there)
                        print i " and " k " include each other"
        }' | sort
}

status=0
fail() {
    echo "includes.sh: $*" >&2
    status=1
}

compare "$source" >"$work/complaints"
if [ -s "$work/complaints" ]; then
    cat "$work/complaints" >&2
    fail "$(wc -l <"$work/complaints") arrows go the wrong way"
fi

# A small tree in which all is well; and what is then done to it.
mkdir "$work/good"
while read -r file header; do
    mkdir -p "$work/good/$(dirname "$file")"
    printf '#include <stdio.h>\n#include "%s"\n' "$header" >>"$work/good/$file"
done <<'END'
client.c lock/lock.h
lock/lock.c drive/engine.h
drive/engine.h core/hold.h
drive/engine.h route/source.h
route/source.h net/conn.h
core/hold.h wire/reply.h
net/conn.h wire/reply.h
net/conn.c net/conn.h
wire/reply.h base/error.h
base/error.c base/error.h
base/error.c rlock_config.h
END

# breaks COMPLAINTS [FILE HEADER]...: what is included as well is noticed
breaks() {
    wanted=$1
    shift
    rm -rf "$work/bad"
    cp -R "$work/good" "$work/bad"
    while [ $# -gt 0 ]; do
        mkdir -p "$work/bad/$(dirname "$1")"
        printf '#include "%s"\n' "$2" >>"$work/bad/$1"
        shift 2
    done
    got=$(compare "$work/bad")
    [ "$got" = "$wanted" ] || fail "expected \"$wanted\", got \"$got\""
}

breaks ''
breaks '' lock/lock.c base/clock.h client.c base/clock.h
breaks 'core/hold.c includes net/conn.h' core/hold.c net/conn.h
breaks 'net/dial.c includes core/call.h' net/dial.c core/call.h
breaks 'route/pool.c includes core/call.h' route/pool.c core/call.h
breaks 'core/hold.c includes route/source.h' core/hold.c route/source.h
breaks 'base and wire include each other
base/map.c includes wire/keys.h' base/map.c wire/keys.h
breaks 'drive and lock include each other
drive/keeper.c includes lock/lock.h' drive/keeper.c lock/lock.h
breaks 'core and net include each other
core/a.c includes net/conn.h
net/a.c includes core/call.h' core/a.c net/conn.h net/a.c core/call.h
breaks 'drive and net include each other
drive and route include each other
net and route include each other
net/a.c includes drive/keeper.h' net/a.c drive/keeper.h
breaks 'new is an unknown folder' new/a.c base/error.h
breaks 'core/a.c includes new/a.h, of an unknown folder' core/a.c new/a.h

exit $status
