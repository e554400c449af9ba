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

# A folder, and what it may include besides itself.
arrows='
base
wire   base
net    base wire
route  base wire net
hold   base wire
op     base wire hold
red    base wire hold op
run    base wire net route hold op red
lock   base wire net route hold op red run
client base wire net route hold op red run lock
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
lock/lock.c run/engine.h
run/engine.h hold/hold.h
run/engine.h route/pool.h
route/pool.h net/conn.h
hold/hold.h wire/reply.h
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
breaks '' lock/lock.c base/clock.h client/client.c lock/lock.h
breaks 'hold/hold.c includes net/conn.h' hold/hold.c net/conn.h
breaks 'net/dial.c includes op/call.h' net/dial.c op/call.h
breaks 'route/pool.c includes op/call.h' route/pool.c op/call.h
breaks 'hold/hold.c includes route/pool.h' hold/hold.c route/pool.h
breaks 'base and wire include each other
base/map.c includes wire/keys.h' base/map.c wire/keys.h
breaks 'lock and run include each other
run/keeper.c includes lock/lock.h' run/keeper.c lock/lock.h
breaks 'net and op include each other
net/a.c includes op/call.h
op/a.c includes net/conn.h' op/a.c net/conn.h net/a.c op/call.h
breaks 'net and route include each other
net and run include each other
net/a.c includes run/keeper.h
route and run include each other' net/a.c run/keeper.h
breaks 'new is an unknown folder' new/a.c base/error.h
breaks 'hold/a.c includes new/a.h, of an unknown folder' hold/a.c new/a.h

exit $status
