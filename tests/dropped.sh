#!/bin/sh
# dropped.sh [FOLDER]
#
# Do the tests notice when a script writes less? Each write command of lua/ is
# dropped once: the script goes on as if it had been done. Then one of the
# programs in FOLDER (build/tests/server) has to fail, which call scripts by
# themselves and look at all that these leave behind. Closes with "N passed, N
# failed".
set -eu

cd "$(dirname "$0")/.."
programs=$(realpath "${1:-build/tests/server}")
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"; echo "0 passed, 1 failed"' EXIT
trap 'exit 143' HUP INT TERM

writes='SET|HSET|PEXPIRE|DEL|HDEL|ZADD|ZREM|ZPOPMIN|INCRBY|DECRBY'
call="(redis[.]p?call|rp?call)\\((('($writes)',)|unpack\\(words\\)|[][a-zA-Z0-9 ]*('S?PUBLISH'|publish)[ ,])"
# Says what a server says that has done it: nobody is rung by nobody's bell. Begins
# with a name, as in Lua a line that begins with a bracket goes on with the last one.
nothing="assert(function(c, ...) if c == 'ZPOPMIN' then return {} end \
if c ~= 'SET' then return 1 end \
return select(select('#', ...), ...) ~= 'GET' and {ok = 'OK'} end)("

# The scripts as they are sent are in $work/sent/lua.
embed() {
    cmake -DSOURCE="$work/lua" -DOUTPUT="$work/sent" -DWITHOUT_C=ON \
        -P src/cmake/EmbedLua.cmake
}
passes() { # PROGRAM [FILTER]
    RLOCK_TEST_LUA="$work/sent/lua" "$programs/$1" --fail-fast \
        ${2:+"--filter=$2"} >"$work/log" 2>&1 </dev/null
}

# The scripts that are not as they were, by their paths: hash/renew
changed() {
    diff -rq "$work/whole" "$work/sent/lua" |
        sed -n "s|^Files $work/whole/\(.*\)\.lua and .*|\1|p"
}

# What looks at these scripts, that which is quick first.
judges() {
    changed | while read -r script; do
        folder=${script%/*}
        case $script in
        fair/*) echo 2 script_fair ;;
        read/* | write/*) printf '2 %s\n' script_rw script_rw_lease ;;
        permit/*) printf '2 %s\n' script_permit script_permit_lease ;;
        waits | survey) printf '2 %s\n' script_fair script_rw script_table ;;
        latch/*) echo '1 script_table */string_*_latch' ;;
        */*) echo "1 script_table */${folder}_${script##*/}*" ;;
        esac
        case $script in
        fair/* | read/* | write/* | permit/*) ;;
        *) echo 3 script_table ;;
        esac
    done | sort -u | cut -d ' ' -f 2-
}
nobody_notices() {
    judges >"$work/judges"
    [ -s "$work/judges" ]
    # shellcheck disable=SC2086
    while read -r judge filter; do
        passes "$judge" $filter && continue
        # What is no Lua any more fails everywhere, and says nothing of the tests.
        if grep -m 1 'Error compiling script' "$work/log"; then exit 1; fi
        return 1
    done <"$work/judges"
}

cp -R lua "$work"
embed
cp -R "$work/sent/lua" "$work/whole"
for program in script_table script_fair script_rw script_rw_lease \
    script_permit script_permit_lease; do
    if ! passes "$program"; then
        cat "$work/log"
        exit 1
    fi
done
noticed=0 survived=0
# With XX probe.lua writes nothing.
grep -nrE "$call" lua --include='*.lua' | grep -vE "'XX'" >"$work/places"
while IFS=: read -r file line text; do
    awk -v line="$line" -v nothing="$nothing" '
        NR == line { sub(/(redis[.]p?call|rp?call)\(/, nothing) }
        { print }' "$file" >"$work/$file"
    embed
    if nobody_notices; then
        survived=$((survived + 1))
        echo "nobody notices: $file:$line: $text"
    else
        noticed=$((noticed + 1))
    fi
    cp "$file" "$work/$file"
done <"$work/places"
trap 'rm -rf "$work"' EXIT
echo "$noticed passed, $survived failed"
[ "$survived" = 0 ]
