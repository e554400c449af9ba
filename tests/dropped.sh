#!/bin/sh
# dropped.sh [PROGRAM]
#
# Do the tests notice when a script writes less? Each write command of lua/ is
# dropped once: the script goes on as if it had been done. Then PROGRAM
# (build/tests/server/script_table) has to fail, which compares all that a script
# leaves behind. Closes with "N passed, N failed".
set -eu

cd "$(dirname "$0")/.."
program=$(realpath "${1:-build/tests/server/script_table}")
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"; echo "0 passed, 1 failed"' EXIT
trap 'exit 143' HUP INT TERM

writes='SET|HSET|PEXPIRE|DEL|HDEL|ZADD|ZREM|ZPOPMIN|INCRBY|DECRBY'
call="(redis[.]p?call|rp?call)\\((('($writes)',)|[a-zA-Z0-9\\[\\] ]*('S?PUBLISH'|publish)[ ,])"
# Says what a server says that has done it: nobody is rung by nobody's bell.
nothing="(function(c, ...) if c == 'ZPOPMIN' then return {} end \
if c ~= 'SET' then return 1 end \
return select(select('#', ...), ...) ~= 'GET' and {ok = 'OK'} end)("

# The scripts as they are sent are in $work/sent/lua.
embed() {
    cmake -DSOURCE="$work/lua" -DOUTPUT="$work/sent" \
        -P src/cmake/EmbedLua.cmake
}
passes() {
    embed && RLOCK_TEST_LUA="$work/sent/lua" "$program" >"$work/log" 2>&1
}

cp -R lua "$work"
if ! passes; then
    cat "$work/log"
    exit 1
fi
noticed=0 survived=0
# With XX probe.lua writes nothing. What a fair lock's line leaves behind is looked
# at by tests/server/script_fair alone, and what permits' scripts do by script_permit,
# which take no scripts from elsewhere.
grep -nrE "$call" lua --include='*.lua' |
    grep -vE "'XX'|^lua/((fair|permit)/|line[.]lua)" >"$work/places"
while IFS=: read -r file line text; do
    awk -v line="$line" -v nothing="$nothing" '
        NR == line { sub(/(redis[.]p?call|rp?call)\(/, nothing) }
        { print }' "$file" >"$work/$file"
    if passes </dev/null; then
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
