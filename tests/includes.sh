#!/bin/sh
# includes.sh [SOURCE]
#
# Reads which folder of src/ includes which, and complains of each include that
# goes up, and of folders that include each other; the same of the files inside a
# folder, where x.c and x.h are one. Counts how many headers a file sees, and where
# the mutex of the hold table is taken by others. What it would complain about is
# then done to copies of a small tree, and each time it must complain of that, and
# of nothing else.
set -eu

LC_ALL=C
export LC_ALL
source=$(cd "${1:-$(dirname "$0")/../src}" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

# A folder, and what it may include besides itself. The command (cli/) is a program
# like any other: it sees the installed headers, and nothing of the library's.
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
cli
'

# Files that include each other all the same. Who is in no circle any more is
# struck off.
circles='
hold/due hold/hold
route/canvass route/census route/cluster route/slotmap route/suspicion
run/async run/batch run/batches run/connector run/desk run/doorbell run/engine
run/keeper run/leg run/node run/notifier run/owner run/subscriptions run/trunk
run/watch
'

# So many headers of ours the .c file in the middle sees; and so often, in so many
# files, the mutex is taken outside of hold/. These numbers only fall.
most_seen='run 63
lock 43'
most_taken='31 15'

# compare SOURCE: complaints, a line each
compare() {
    (cd "$1" && find . -name '*.[ch]' | sort |
        xargs grep -H '^[ 	]*#[ 	]*include[ 	]*"' /dev/null) |
        awk -F: -v arrows="$arrows" -v circles="$circles" '
        BEGIN {
            n = split(circles, word, " ")
            for (i = 1; i <= n; i++)
                listed[word[i]]
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
        # What start leads to, by way of what is at hand.
        function visit(start, at, i, n, to) {
            n = at in leads ? split(leads[at], to, " ") : 0
            for (i = 1; i <= n; i++)
                if (!((start, to[i]) in led)) {
                    led[start, to[i]]
                    visit(start, to[i])
                }
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
            sub(/\.[ch]$/, "", file)
            sub(/\.h$/, "", header)
            if (from == to && file != header)
                leads[file] = leads[file] " " header
        }
        END {
            for (i in strange)
                print i " is an unknown folder"
            for (i in known)
                for (k in known)
                    if (i < k && (i, k) in there && (k, i) in there)
                        print i " and " k " include each other"
            for (i in leads)
                visit(i, i)
            for (i in leads)
                if ((i, i) in led && !(i in listed))
                    print i " is in a circle of files"
            for (i in listed)
                if (!((i, i) in led))
                    print i " is in no circle any more"
        }' | sort
}

# sees SOURCE FOLDER: how many headers of ours its .c file in the middle sees
sees() {
    for file in "$1/$2"/*.c; do
        "${CC:-cc}" -MM -MG -I "$1" -I "${source%/*}/include" "$file" |
            tr ' ' '\n' | grep -c "^$1/.*\.h\$" || true
    done | sort -n | awk '{ n[NR] = $1 } END { print n[int((NR + 1) / 2)] }'
}

# taken SOURCE: in how many places the mutex is taken outside of hold/, and in how
# many files; the table is called t, or holds
taken() {
    (cd "$1" && find op red run lock client -name '*.c' 2>/dev/null |
        xargs grep -E 'rl_mutex_lock\(&(t->|[^ ]*holds\.)mutex\)' /dev/null) |
        awk -F: '!($1 in file) { file[$1]; files++ } END { print NR, files + 0 }'
}

# count SOURCE: complaints of what is too much
count() {
    echo "$most_seen" | while read -r folder most; do
        n=$(sees "$1" "$folder")
        echo "a file of $folder/ sees $n headers, of $most" >>"$work/figures"
        [ "$n" -gt 0 ] && [ "$n" -le "$most" ] || tail -n 1 "$work/figures"
    done
    echo "$(taken "$1") $most_taken" | while read -r places files most most_files; do
        echo "the mutex is taken in $places places, of $most," \
            "in $files files, of $most_files" >>"$work/figures"
        [ "$places" -le "$most" ] && [ "$files" -le "$most_files" ] ||
            tail -n 1 "$work/figures"
    done
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
count "$source" >"$work/complaints"
cat "$work/figures"
[ ! -s "$work/complaints" ] || fail "that is too much: $(cat "$work/complaints")"

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

circles='' most_taken='2 1'
most_seen='lock 5'

# breaks COMPLAINTS [FILE HEADER]...: what is included as well is noticed; or done
breaks() {
    wanted=$1
    shift
    rm -rf "$work/bad"
    cp -R "$work/good" "$work/bad"
    while [ $# -gt 0 ]; do
        mkdir -p "$work/bad/$(dirname "$1")"
        case $2 in
        *.h) printf '#include "%s"\n' "$2" >>"$work/bad/$1" ;;
        *) printf '    %s\n' "$2" >>"$work/bad/$1" ;;
        esac
        shift 2
    done
    got=$(compare "$work/bad" && count "$work/bad")
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
breaks 'cli/run.c includes base/error.h' cli/run.c base/error.h
breaks '' cli/run.c cli.h
breaks 'hold/a.c includes cli/run.h' hold/a.c cli/run.h
breaks 'new is an unknown folder' new/a.c base/error.h
breaks 'hold/a.c includes new/a.h, of an unknown folder' hold/a.c new/a.h

breaks '' net/a.h net/b.h net/b.c net/c.h net/a.c net/c.h
breaks 'net/a is in a circle of files
net/b is in a circle of files' net/a.h net/b.h net/b.c net/a.h
breaks 'net/a is in a circle of files
net/b is in a circle of files
net/c is in a circle of files' \
    net/a.c net/b.h net/b.c net/c.h net/c.h net/a.h net/d.c net/a.h
breaks 'a file of lock/ sees 6 headers, of 5' \
    lock/lock.c run/loop.h run/loop.h base/error.h
breaks '' lock/lock.c run/loop.h run/loop.h base/error.h lock/a.c wire/reply.h
lock_t='rl_mutex_lock(&t->mutex);' lock_c='rl_mutex_lock(&c->holds.mutex);'
breaks '' lock/lock.c "$lock_t" lock/lock.c "$lock_c" hold/a.c "$lock_t"
breaks 'the mutex is taken in 3 places, of 2, in 1 files, of 1' \
    op/a.c "$lock_t" op/a.c "$lock_c" op/a.c "$lock_t"
breaks 'the mutex is taken in 2 places, of 2, in 2 files, of 1' \
    op/a.c "$lock_t" run/b.c "$lock_t"
circles='net/a net/b'
breaks '' net/a.h net/b.h net/b.c net/a.h
breaks 'net/a is in no circle any more
net/b is in no circle any more' net/a.h net/b.h

exit $status
