#!/bin/sh
# figures.sh draw|check
# figures.sh write MACHINE RUN...
#
# src/doc/figures/figures.json has what the benchmarks measured, a row a line. `draw`
# writes the tables of src/doc/figures.md and the plot beside the JSON anew from it;
# `check` says whether they are what would be written. `write` puts the values of
# runs into it first: each RUN a file with what run.sh prints, where each row begins
# with its program's name. A row is known by its program and its number there; a
# second figure in a cell is one of its own (4.2). Rows that no run has keep theirs.
set -eu

LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.."
folder=src/doc/figures
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

# draw FOLDER: figures.md and figures.svg there
draw() {
    awk -v plot="$1/figures.svg" -f tests/bench/figures.awk $folder/figures.json \
        >"$work/tables"
    awk -v tables="$work/tables" '
        /^<!-- begin: / { print; while ((getline line <tables) > 0) print line; skip = 1 }
        /^<!-- end -->/ { skip = 0 }
        !skip' src/doc/figures.md >"$1/figures.md"
}

# values RUN...: "PROGRAM NUMBER[.NUMBER] VALUE", a line each
values() {
    for run; do
        awk -F ' *[|] *' '
            $1 == "" || NF < 4 { next }
            {
                n = ++rows[$1]
                s = $4
                for (k = 1; match(s, /[0-9]+[.]?[0-9]*/); k++) {
                    value = substr(s, RSTART, RLENGTH)
                    if (k == 1) print $1 " " n, value
                    print $1 " " n "." k, value
                    s = substr(s, RSTART + RLENGTH)
                    if (s !~ /^[ ,]*[A-Za-z]* *[0-9]/) break
                }
            }' "$run"
    done
}

write() {
    machine=$1
    shift
    values "$@" >"$work/values"
    awk -v machine="$machine" -v when="$(date '+%-d %B %Y')" -v runs=$# '
        NR == FNR {
            key = $1 " " $2
            all[key] = all[key] (key in all && all[key] != "" ? ", " : "") $3
            next
        }
        /^\{"runs"/ { sub(/[0-9]+/, runs) }
        /^ "when"/ { $0 = " \"when\": \"" when "\"," }
        /^ "machine"/ { $0 = " \"machine\": \"" machine "\"," }
        match($0, /"row": "[^"]*"/) {
            key = substr($0, RSTART + 8, RLENGTH - 9)
            if (key in all) sub(/"measured": \[[^]]*\]/, "\"measured\": [" all[key] "]")
            else if (key != "") print "not measured: " key >"/dev/stderr"
        }
        { print }' "$work/values" $folder/figures.json >"$work/json"
    cp "$work/json" $folder/figures.json
}

case ${1-} in
draw | write)
    if [ "$1" = write ]; then
        shift
        write "$@"
    fi
    draw "$work"
    cp "$work/figures.md" src/doc/figures.md
    cp "$work/figures.svg" $folder/figures.svg
    ;;
check)
    draw "$work"
    diff -u src/doc/figures.md "$work/figures.md"
    diff -u $folder/figures.svg "$work/figures.svg"
    ;;
*)
    sed -n 's/^# \(figures.sh [dw]\)/usage: \1/p' "$0" >&2
    exit 2
    ;;
esac
