#!/bin/sh
# figures.sh draw|check
# figures.sh write MACHINE RUN...
# figures.sh missed RUN...
#
# src/doc/figures/figures.json has what the benchmarks measured, a row a line. `draw`
# writes the tables of src/doc/figures.md and the plots beside the JSON anew from it;
# `check` says whether they are what would be written, and that of other values others
# would be. `write` puts the values of
# runs into it first: each RUN a file with what run.sh prints, where each row begins
# with its program's name. A row is known by its program and its number there; a
# second figure in a cell is one of its own (4.2). Rows that no run has keep theirs.
# `missed` says which rows of runs are beyond their aims in each of them, and fails if
# some are, or if none has an aim.
set -eu

LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.."
folder=src/doc/figures
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

# draw FOLDER JSON: figures.md and the plots there
draw() {
    awk -v folder="$1" -f tests/bench/figures.awk -f tests/bench/plots.awk "$2" \
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

missed() {
    awk -F ' *[|] *' '
        $1 == "" || NF < 4 { next }
        { key = $1 " " ++rows[FILENAME, $1] }
        $3 !~ /^[0-9]/ { next }
        !(key in least) || $4 + 0 < least[key] { least[key] = $4 + 0 }
        { aim[key] = $3 + 0; what[key] = $1 ": " $2; aims++ }
        END {
            for (key in least)
                if (least[key] > aim[key] && ++n)
                    printf "%s: at most %g, at least %g\n", what[key], aim[key],
                        least[key]
            printf "%d missed\n", n
            exit n > 0 || !aims
        }' "$@"
}

# as_drawn FOLDER: is what is there what the documents have?
as_drawn() {
    diff -u src/doc/figures.md "$1/figures.md" || return 1
    for file in "$folder"/*.svg "$1"/*.svg; do
        diff -u "$folder/${file##*/}" "$1/${file##*/}" || return 1
    done
}
# differs PROGRAM PLOT: drawn of figures that awk has changed so, that plot is another
differs() {
    rm -rf "$work/other"
    mkdir "$work/other"
    awk "$1" $folder/figures.json >"$work/other.json"
    draw "$work/other" "$work/other.json"
    if cmp -s "$folder/$2.svg" "$work/other/$2.svg" ||
        as_drawn "$work/other" >/dev/null 2>&1; then
        echo "nobody would see this in $2.svg: $1"
        exit 1
    fi
}
# A row is missed if it is in each run, and where there is none nothing is reached.
check_missed() {
    echo 'pair | a lock | 1.1 | 1.2 (missed) | - |' >"$work/over"
    echo 'pair | a lock | 1.1 | 1.0 | - |' >"$work/within"
    missed "$work/over" "$work/within" >/dev/null &&
        ! missed "$work/over" >/dev/null && ! missed /dev/null >/dev/null
}
check() {
    check_missed
    mkdir "$work/drawn"
    draw "$work/drawn" $folder/figures.json
    as_drawn "$work/drawn"
    for plot in "$folder"/*.svg; do
        plot=$(basename "$plot" .svg)
        rows='/"plot": "'$plot'"/'
        [ "$plot" != figures ] || rows='/"unit": "times"/'
        # One figure is another; none of them was measured.
        differs "$rows"' && !n++ { sub(/"measured": .[0-9.]*/, "\"measured\": [0.6") } 1' \
            "$plot"
        differs "$rows"' { sub(/"measured": .*/, "\"measured\": []}") } 1' "$plot"
    done
}

case ${1-} in
draw | write)
    if [ "$1" = write ]; then
        shift
        write "$@"
    fi
    mkdir "$work/drawn"
    draw "$work/drawn" $folder/figures.json
    mv "$work/drawn/figures.md" src/doc/figures.md
    rm -f $folder/*.svg
    cp "$work/drawn"/*.svg $folder
    ;;
check)
    check
    ;;
missed)
    shift
    missed "$@"
    ;;
*)
    sed -n 's/^# \(figures.sh [dwm]\)/usage: \1/p' "$0" >&2
    exit 2
    ;;
esac
