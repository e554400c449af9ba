#!/bin/sh
# readme.sh
#
# README.md has no more than 200 lines, and README.zh-CN.md is the same document:
# headings, rows of tables with their figures and what stands in code there, code
# blocks (but for comments), and links, in the same order. The tests that it names
# are there, and its figures are those of figures.md. Its pictures are, are small, and say in words what they show; what is
# said in their place is the same. What it would complain about is then done to
# copies, and each time it must complain.
set -eu

LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.."
most_lines=200
most_bytes=60000
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

# skeleton FILE: what does not depend on the language, a line each
skeleton() {
    awk '
        # All in s that matches, sorted, as the languages have their own order.
        function all(s, pattern,   n, i, k, part, line) {
            while (match(s, pattern)) {
                part[++n] = substr(s, RSTART, RLENGTH)
                for (i = n; i > 1 && part[i] < part[i - 1]; i--) {
                    k = part[i]; part[i] = part[i - 1]; part[i - 1] = k
                }
                s = substr(s, RSTART + RLENGTH)
            }
            for (i = 1; i <= n; i++) line = line " " part[i]
            return line
        }
        function code(s) {
            sub(/ +(\/\/|# |\/\*).*$/, "", s)
            print "code " s
        }
        /^```/ { inside = !inside; print "block " $0; next }
        inside { if ($0 !~ /^#include/) code($0); else print "code " $0; next }
        /^    / { code($0); next }
        /^#/ { print "heading " $1 }
        /^\|/ {
            n = gsub(/\|/, "|")
            print "row " n all($0, "`[^`]*`") ";" all($0, "[0-9][0-9.,]*[0-9]|[0-9]")
        }
        {
            while (match($0, /\]\([^)]*\)/)) {
                link = substr($0, RSTART + 2, RLENGTH - 3)
                print "link " (link ~ /^README/ ? "the other" : link)
                $0 = substr($0, RSTART + RLENGTH)
            }
        }' "$1"
}

# alike ENGLISH CHINESE
alike() {
    skeleton "$1" >"$work/en"
    skeleton "$2" >"$work/zh"
    [ -s "$work/en" ] && diff -u "$work/en" "$work/zh"
}

# short FILE
short() {
    [ "$(wc -l <"$1")" -le "$most_lines" ] ||
        echo "$1 has more than $most_lines lines"
}

# proved FILE: what it names of the tests
proved() {
    grep -o '`tests/[^`]*`' "$1" | tr -d '`' | sed 's/ .*//' | sort -u |
        while read -r file; do
            [ -e "$file" ] || echo "$file is named, and is no file"
        done
}

# measured FILE: what it says of figures is a row of figures.md
measured() {
    sed -n '/^## Figures/,/^## How/p' "$1" | grep -o '[0-9][0-9.]* to [0-9][0-9.]*' |
        while read -r least _ most; do
            grep -q "^|.*| ${least}[^|]*|[^|]*| ${most}[ |]" src/doc/figures.md ||
                echo "figures.md has no row from $least to $most"
        done
}

# pictured FILE: each picture in it, with what is said in its place
pictured() {
    dir=$(dirname "$1")
    sed -n 's/^!\[\(.*\)\](\(.*\))$/\2 \1/p' "$1" >"$work/pictures"
    while read -r picture words; do
        [ "$(wc -c <"$dir/$picture")" -le "$most_bytes" ] ||
            echo "$picture has more than $most_bytes bytes"
        grep -q '<title id="t">..*</title>' "$dir/$picture" ||
            echo "$picture has no title"
        [ "$(sed -n 's/^<desc id="d">\(.*\)<\/desc>$/\1/p' "$dir/$picture")" = \
            "$words" ] || echo "$1 says other words than $picture"
    done <"$work/pictures"
}

status=0
complain() {
    echo "$*"
    status=1
}
# none CHECK FILE: it has nothing to complain about
none() {
    found=$("$@")
    [ -z "$found" ] || complain "$found"
}
# planted CHANGE CHECK FILE...: done to a copy of the last one, it is seen
planted() {
    change=$1 check=$2 file=$3
    shift 2
    sed "$change" "$file" >"$work/changed.md"
    if cmp -s "$file" "$work/changed.md"; then
        complain "nothing was changed: $change"
    fi
    if [ "$check" = alike ]; then
        ! alike README.md "$work/changed.md" >/dev/null ||
            complain "not seen: $change"
    else
        [ -n "$("$check" "$work/changed.md" 2>&1)" ] || complain "not seen: $change"
    fi
}

alike README.md README.zh-CN.md || complain "they are not alike"
none measured README.md
for file in README.md README.zh-CN.md; do
    none short "$file"
    none proved "$file"
done
[ "$(grep -c '^!\[' README.md)" = 3 ] || complain "README.md has no three pictures"
for file in README.md src/doc/*.md; do
    none pictured "$file"
done

for change in '/^## /{s/#//;}' '/rlock_lost_fd/d' 's/1\.20 /1.21 /' 's/5000/500/' \
    's/locks\.md/lock.md/' 's/`rlock_extend`/`rlock_lock`/'; do
    planted "$change" alike README.zh-CN.md
done
planted '1{p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;p;}' short README.md
planted 's/2\.68 /2.69 /' measured README.md
planted 's/fork\.c/spoon.c/' proved README.md
sed 's/](src/](..\/src/' README.md >"$work/README.md"
planted 's/^!\[Process A/![Process/' pictured README.md
exit $status
