#!/bin/sh
# links.sh FOLDER
#
# Each link of each document (*.md) below the folder leads to a file or folder that
# is there, and where it names a heading, to a document that has that. Then it has
# to complain of some that do not.
set -eu

LC_ALL=C
export LC_ALL
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

# links DOCUMENT: what it links to, and shows as a picture, but in code
links() {
    sed '/^ *```/,/^ *```/d; s/`[^`]*`//g' "$1" |
        grep -oE '\]\([^) ]+|(src|srcset|href)="[^"]+' |
        sed -E 's/^\]\(|^[a-z]+="//' | grep -vE '^(https?|mailto):' || :
}

# anchor: a heading as links name it; of letters those that are ASCII
anchor() {
    sed -E 's/%[0-9A-Fa-f]{2}//g' | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'
}
headings() {
    sed '/^ *```/,/^ *```/d' "$1" | sed -nE 's/^#+ +//p' | anchor
}

# dead FOLDER: a line for each link that leads nowhere
dead() {
    find "$1" -name '*.md' | sort | while read -r document; do
        links "$document" | while read -r link; do
            file=${link%%#*}
            target=${document%/*}/$file
            [ -n "$file" ] || target=$document
            heading=$(echo "${link#"$file"}" | tr -d '#' | anchor)
            if [ ! -e "$target" ]; then
                echo "$document: $link"
            elif [ -n "$heading" ] && ! headings "$target" | grep -qx -- "$heading"
            then
                echo "$document: $link: no such heading"
            fi
        done
    done
}

[ -n "$(find "$1" -name '*.md')" ]
dead "$1" >"$work/dead"
cat "$work/dead"
[ ! -s "$work/dead" ]

mkdir "$work/sub"
echo '# One, *two*: `three`' >"$work/sub/there.md"
cat >"$work/good.md" <<'END'
[a](sub/there.md), [b](sub/there.md#one-two-three), [c](#here), [d](sub),
<img src="sub/there.md">, [e](https://example.org/none), `[f](code.md)`
## Here
END
cat >"$work/bad.md" <<'END'
[a](sub/not.md) and [b](sub/there.md#one) and [c](#there) and <a href="not.svg">
END
rm "$work/dead"
[ "$(dead "$work" | wc -l)" = 4 ]
[ "$(dead "$work" | grep -c 'bad\.md')" = 4 ]
