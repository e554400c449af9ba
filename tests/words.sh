#!/bin/sh
# words.sh [SOURCE]
#
# What a newcomer to src/ has to learn is counted: the words of README.md, for all,
# and for who goes into one folder; and the types that files share, whose names
# begin with rl_. There are no more than stand here; a number only falls, unless a
# commit says why it rose. And what README.md and threads.md name as a file is one.
# That this is seen, a copy with one file less has to show.
set -eu

LC_ALL=C
export LC_ALL
source=$(cd "${1:-$(dirname "$0")/../src}" && pwd)
most_words=52
most_local=36
most_types=194
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

# words HEADING COLUMN: what the table that begins so explains there; "owner,
# holder" are two
words() {
    sed -n "/^| $1 /,/^\$/p" "$source/README.md" | sed 1,2d |
        awk -F'|' -v column="$2" 'NF > column { print $column }' |
        tr ',;' '\n\n' | sed 's/^ *//; s/ *$//' | sed '/^$/d'
}

types() {
    find "$source" -name '*.h' -exec cat {} + |
        sed -nE 's/^\} (rl_[a-z0-9_]+);.*/\1/p
            s/^typedef [^{]*[ *(](rl_[a-z0-9_]+)\)?[;(].*/\1/p' | sort -u
}

# missing LIST: what README.md names, and the list of files has not
missing() {
    cat "$source/README.md" "$source/threads.md" |
        grep -oE '`([a-z_]+/)?[a-z_0-9]+\.[ch]`' | tr -d '`' |
        sort -u | while read -r name; do
        grep -qE "(^|/)$name\$" "$1" || echo "$name is named, and is no file"
    done
}

(cd "$source" && find . -name '*.[ch]' | sed 's|^\./||' | sort) >"$work/files"
status=0
bad=$(missing "$work/files")
if [ -n "$bad" ]; then
    echo "$bad"
    status=1
fi
grep -v '^hold/hold\.h$' "$work/files" >"$work/fewer"
if [ -z "$(missing "$work/fewer")" ]; then
    echo "a file that is not there was not missed"
    status=1
fi

# count NUMBER MOST WHAT
count() {
    echo "$1 $3 of $2"
    if [ "$1" -gt "$2" ] || [ "$1" = 0 ]; then
        echo "too many, or nothing was counted"
        status=1
    fi
}

count "$(words word 2 | wc -l)" $most_words 'words for all'
count "$(words 'folder | word' 3 | wc -l)" $most_local 'words of one folder'
count "$(types | wc -l)" $most_types types
exit $status
