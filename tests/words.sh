#!/bin/sh
# words.sh [SOURCE]
#
# What a newcomer to src/ has to learn is counted: the words of the glossary in
# README.md, and the types that files share, whose names begin with rl_. There are
# no more than stand here; a number only falls, unless a commit says why it rose.
# And what README.md names as a file is one. That this is seen, a copy with one
# file less has to show.
set -eu

LC_ALL=C
export LC_ALL
source=$(cd "${1:-$(dirname "$0")/../src}" && pwd)
most_words=88
most_types=170
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

# The first column of the first table: "owner, holder" are two.
words() {
    sed -n '/^| word /,/^$/p' "$source/README.md" | sed 1,2d |
        awk -F'|' 'NF > 2 { print $2 }' | tr ',;' '\n\n' | sed 's/^ *//; s/ *$//' |
        sed '/^$/d'
}

types() {
    find "$source" -name '*.h' -exec cat {} + |
        sed -nE 's/^\} (rl_[a-z0-9_]+);.*/\1/p
            s/^typedef [^{]*[ *(](rl_[a-z0-9_]+)\)?[;(].*/\1/p' | sort -u
}

# missing LIST: what README.md names, and the list of files has not
missing() {
    grep -oE '`([a-z_]+/)?[a-z_0-9]+\.[ch]`' "$source/README.md" | tr -d '`' |
        sort -u | while read -r name; do
        grep -qE "(^|/)$name\$" "$1" || echo "README.md names $name, which is no file"
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

words=$(words | wc -l) types=$(types | wc -l)
echo "$words words of $most_words, $types types of $most_types"
if [ "$words" -gt "$most_words" ] || [ "$types" -gt "$most_types" ]; then
    echo "too many"
    status=1
fi
if [ "$words" = 0 ] || [ "$types" = 0 ]; then
    echo "nothing was counted"
    status=1
fi
exit $status
