#!/bin/sh
# catalogue.sh PROGRAM...
#
# Compares catalogue.txt with the tests of the programs that carry the number
# of a row in their names: no row is forgotten, no test is left out, none is
# listed that does not exist. What it would complain about is then done to
# copies, and each time it must complain of that, and of nothing else.
set -eu

LC_ALL=C
export LC_ALL
rows=162
root=$(dirname "$0")/../..
catalogue=$root/tests/fault/catalogue.txt
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

# A test a line. Each runner's list ends its lines with the tests' names.
tests_of() {
    for program; do
        "$program" --list
    done | awk '$NF ~ /^fault_[0-9][0-9][0-9]_/ { print $NF }'
}

# compare TESTS CATALOGUE: complaints, a line each
compare() {
    awk -v rows="$rows" -v root="$root" '
        function complain(text) {
            print text
        }
        function end_row() {
            if (row == "")
                return
            if (!listed_here && !reason)
                complain("row " row " has no test and waits for nothing")
            if (listed_here && reason == "waits for its tests")
                complain("row " row " has the tests it waits for")
        }
        function has(file, text, line, found) {
            while ((getline line <file) > 0)
                if (index(line, text))
                    found = 1
            close(file)
            return found
        }
        NR == FNR {
            if ($1 in tests)
                complain($1 " is the name of two tests")
            tests[$1]
            next
        }
        /^#/ || NF == 0 { next }
        /^[0-9][0-9][0-9] [^ ]/ {
            end_row()
            if (row != "" && $1 <= row)
                complain("row " $1 " comes after row " row)
            row = $1
            there[row + 0]
            listed_here = 0
            last = reason = ""
            next
        }
        /^    fault_[a-z0-9_]+$/ {
            if (substr($1, 7, 3) != row)
                complain($1 " is listed in row " row)
            if (!($1 in tests))
                complain($1 " is listed and no test")
            if ($1 <= last)
                complain($1 " comes after " last)
            listed[last = $1]
            listed_here++
            next
        }
        /^    waits for [^ ]/ {
            reason = substr($0, 5)
            next
        }
        /^    documented in [^ ]+: [^ ]/ {
            reason = substr($0, 5)
            file = substr($3, 1, length($3) - 1)
            text = substr($0, index($0, ": ") + 2)
            if (!has(root "/" file, text))
                complain(file " does not say: " text)
            next
        }
        { complain("line " FNR " is none of a catalogue: " $0) }
        END {
            end_row()
            for (i = 1; i <= rows; i++)
                if (!(i in there))
                    complain(sprintf("row %03d is missing", i))
            for (i in there)
                if (i + 0 < 1 || i + 0 > rows)
                    complain(sprintf("row %03d is none of the catalogue", i))
            for (name in tests)
                if (!(name in listed))
                    complain(name " is a test and not listed")
        }' "$1" "$2"
}

status=0
fail() {
    echo "catalogue.sh: $*" >&2
    status=1
}

tests_of "$@" | sort >"$work/tests"
compare "$work/tests" "$catalogue" >"$work/complaints"
if [ -s "$work/complaints" ]; then
    sort "$work/complaints" >&2
    fail "catalogue.txt and the tests differ"
fi

# A small world in which all is well; and what is then done to it.
cat >"$work/good_tests" <<'END'
fault_001_one
fault_001_two
fault_002_three
END
cat >"$work/good" <<'END'
# A comment.
001 the first
    fault_001_one
    fault_001_two
002 the second
    fault_002_three
    waits for a part
003 the third
    waits for another part
004 the fourth
    documented in notes: a fourth one
END
echo "There is a fourth one." >"$work/notes"
root=$work
rows=4

# breaks COMPLAINT SCRIPT [SCRIPT_FOR_THE_TESTS]: what sed does is noticed
breaks() {
    sed "$2" "$work/good" >"$work/bad"
    sed "${3-}" "$work/good_tests" >"$work/bad_tests"
    got=$(compare "$work/bad_tests" "$work/bad")
    [ "$got" = "$1" ] || fail "expected \"$1\", got \"$got\""
}

breaks '' ''
breaks 'row 003 is missing' '/^003/,/another/d'
breaks 'row 001 comes after row 002' '/^001/i 002 x\n    waits for y'
breaks 'row 005 is none of the catalogue' '$a 005 x\n    waits for y'
breaks 'row 003 has no test and waits for nothing' '/another/d'
breaks 'row 002 has the tests it waits for' 's/for a part/for its tests/'
breaks 'notes does not say: a fifth one' 's/fourth one/fifth one/'
breaks 'line 1 is none of a catalogue: A comment.' 's/^# //'
breaks 'fault_001_two is a test and not listed' '/_two/d'
breaks 'fault_001_two is listed and no test' '' '/_two/d'
breaks 'fault_001_two is listed and no test
fault_001_too is a test and not listed' '' 's/two/too/'
breaks 'fault_001_two is listed in row 002' '/_two/{h;d};/^002/G'
breaks 'fault_001_one comes after fault_001_two' '/_one/{h;d};/_two/G'
breaks 'fault_001_one comes after fault_001_one' '/_one/p'
breaks 'fault_001_one is the name of two tests' '' '1p'

exit $status
