#!/usr/bin/env bash
# bench.sh [BUILD]
#
# The figures of `rlock run`, from a build with tests (build): what it costs
# against flock(1), in turns; its memory; what is left of the lease when COMMAND
# has executed its last instruction, and how soon that is after a death.
#
#   ROUNDS   how often each death and stop is tried; 100
#   TURNS    how often each of the two commands is run; 200
set -eu

cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build}")
rlock=$build/bin/rlock

if [ "${2:-}" = '' ]; then
    exec tests/with-redis.sh bash "$0" "$build"
fi
export RLOCK_URI=$2
file=$(mktemp)
trap 'rm -f "$file"' EXIT

# micros COMMAND...: how long it takes
micros() {
    local from=$EPOCHREALTIME to
    "$@"
    to=$EPOCHREALTIME
    echo $((${to/./} - ${from/./}))
}

median() {
    sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'
}

turns=${TURNS:-200}
for ((i = 0; i < turns; i++)); do
    echo "flock $(micros flock -n "$file" true)"
    echo "rlock $(micros "$rlock" run -n job true)"
done >"$file.times"
declare -A took
for who in flock rlock; do
    took[$who]=$(sed -n "s/^$who //p" "$file.times" | median)
    echo "| $who -n ... true, median of $turns in turns | ${took[$who]} us |"
done
echo "| the difference | $((took[rlock] - took[flock])) us |"
rm -f "$file.times"

# processor COMMAND...: of one run, with its children, in us; on a machine that
# others use, too, that is what can be compared.
processor() {
    local TIMEFORMAT='%U %S'
    {
        time for ((i = 0; i < turns; i++)); do
            "$@"
        done
    } 2>&1 | awk -v n="$turns" '{ printf "%d", ($1 + $2) * 1000000 / n }'
}
flock_us=$(processor flock -n "$file" true)
rlock_us=$(processor "$rlock" run -n job true)
echo "| the same, on a processor: flock, rlock | $flock_us us, $rlock_us us |"
echo "| the difference | $((rlock_us - flock_us)) us |"

"$rlock" run job sleep 1000 &
front=$!
trap 'rm -f "$file"; kill -9 "$front"' EXIT
until [ "$(wc -w <"/proc/$front/task/$front/children")" = 2 ]; do
    sleep 0.1
done
sleep 1
# A line without an end.
read -r keeper command <"/proc/$front/task/$front/children" || :
echo "| private memory of front and keeper, idle |" \
    "$(cat "/proc/$front/smaps_rollup" "/proc/$keeper/smaps_rollup" |
        awk '/^Private_(Clean|Dirty)/ { n += $2 } END { print n }') KiB |"
kill "$command"
wait "$front" || :
trap 'rm -f "$file"' EXIT

# A test has a minute: ten rounds at a time, and of all the worst.
for ((left = ${ROUNDS:-100}; left > 0; left -= 10)); do
    RLOCK_CLI_ROUNDS=$((left < 10 ? left : 10)) "$build/tests/cli/exclusion" 2>&1 |
        grep '^|' || echo '| failed | 0 |'
done | awk -F'|' -v rounds="${ROUNDS:-100}" '
    {
        what = $2
        ms = $3 + 0
        sub(/, the worst of [0-9]+ *$/, "", what)
        if (!(what in worst) ||
            (what ~ /left/ ? ms < worst[what] : ms > worst[what]))
            worst[what] = ms
    }
    END {
        for (what in worst)
            printf "|%s, the worst of %d | %.1f ms |\n", what, rounds, worst[what]
    }' | sort
