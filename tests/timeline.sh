#!/bin/sh
# timeline.sh BUILD [AWK]...
#
# What rlock-timeline draws of the example's run is what was written down, whichever
# awk draws it; of a file made by hand, in which a lock is lost, too.
set -eu

cd "$(dirname "$0")/.."
build=$1
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

die() {
    echo "timeline.sh: $1" >&2
    exit 1
}
# has NUMBER TEXT PICTURE: it is there so often
has() {
    found=$(grep -o "$2" "$3" | wc -l)
    [ "$found" -eq "$1" ] || die "$3: $found times, not $1: $2"
}
# draw NAME EVENTS
draw() {
    examples/rlock-timeline -t "$1 <a & b>" -d 'says "so"' "$2" >"$work/$1.svg"
    has 1 '<title id="t">'"$1"' &lt;a &amp; b></title>' "$work/$1.svg"
    has 1 '<desc id="d">says &quot;so&quot;</desc>' "$work/$1.svg"
    ! grep -n 'nan\|inf\|=""' "$work/$1.svg" || die "no number, or none at all"
}

# Two threads, each two levels deep.
tests/with-redis.sh sh -c '"$0" -w "worker" -n 2 "$1" lock 50 lock 50 unlock unlock' \
    "$build/examples/timeline" >"$work/run"
# Two threads, each with its two levels; then a lock that is lost.
pictures() {
    draw run "$work/run"
    has 2 '<rect class="p0 l1" [^>]* height="14' "$work/run.svg"
    has 3 'p0 l2' "$work/run.svg" # one is the legend's
    has 1 '>worker 1</text>' "$work/run.svg"
    has 1 '>worker 2</text>' "$work/run.svg"
    has 0 'class="lost"' "$work/run.svg"

    # A has it for 900 ms, is told that it is lost, and 50 ms later B has it.
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' \
        1000000 1:1 LANE '' 0 0 A 1000000 2:2 LANE '' 0 0 B \
        1000000 1:1 ACQUIRED x 7 1 '' 1100000 2:2 CONTENDED x 0 0 '' \
        1400000 9:9 RENEWED x 7 1 '' 1900000 9:9 LOST x 7 0 'gone' \
        1950000 2:2 ACQUIRED x 8 1 '' 2100000 2:2 RELEASED x 8 0 '' >"$work/events"
    draw lost "$work/events"
    has 1 '>LOST, 50 ms before the next grant</text>' "$work/lost.svg"
    has 2 'class="wait p[01]"' "$work/lost.svg" # one is the legend's
    has 2 'class="tick"' "$work/lost.svg"
    has 1 '<rect class="p1 l1" ' "$work/lost.svg"
}
pictures
# By others, where they are.
for awk in "$@" gawk original-awk 'busybox awk'; do
    command -v "${awk%% *}" >/dev/null || continue
    mkdir -p "$work/bin"
    printf '#!/bin/sh\nexec %s "$@"\n' "$awk" >"$work/bin/awk"
    chmod +x "$work/bin/awk"
    for picture in run lost; do
        cp "$work/$picture.svg" "$work/$picture.before"
    done
    (PATH=$work/bin:$PATH && pictures)
    for picture in run lost; do
        cmp "$work/$picture.svg" "$work/$picture.before" || die "$awk draws another"
    done
    echo "$awk draws the same"
done
