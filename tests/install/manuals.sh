#!/bin/sh
# manuals.sh pages|contents|command|links|lint|html|planted PREFIX
#
# Looks at the pages of the manual that were installed below PREFIX:
#
#   pages     there is one for each function that the library exports, and each
#             type of the headers, and it names that
#   contents  some say what the headers say, with all that mdoc makes of it
#   command   rlock(1) has the verbs, options, fields of --json and variables of the
#             environment that the program has, and no others
#   links     each page that one of them refers to is there, and no other
#   html      each page is there for a browser, and what that refers to
#   lint      mandoc has nothing to say of them, not even of style
#   planted   a function without a comment, and a status that base.h does not know,
#             are noticed when the pages are written
set -eu

LC_ALL=C
export LC_ALL
root=$(cd "$(dirname "$0")/../.." && pwd)
what=$1 prefix=$2
man=$prefix/share/man
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

status=0
complain() {
    echo "$*"
    status=1
}

has_page() {
    [ -e "$man/man3/$1.3" ] || {
        complain "$1 has no page"
        return
    }
    grep -qE "^\.Nm $1( ,)?\$" "$man/man3/$1.3" ||
        complain "the page of $1 does not name it"
}

pages() {
    nm -D --defined-only "$(find "$prefix" -name librlock.so)" |
        awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' >"$work/functions"
    cat "$prefix"/include/rlock/*.h |
        sed -n 's/^} \(rlock_[a-z_]*\);.*/\1/p' >"$work/types"
    [ "$(wc -l <"$work/functions")" -gt 40 ] && [ -s "$work/types" ] ||
        complain "nothing was looked for"
    while read -r name; do
        has_page "$name"
    done <<END
rlock
$(cat "$work/functions" "$work/types")
END
}

# says PAGE TEXT...; as they are read there, one after the other
says() {
    page=$1
    shift
    mandoc -T ascii "$man/man3/$page.3" | col -bx | tr -s ' \n' ' ' >"$work/page"
    for text in "$@"; do
        grep -qF -- "$text" "$work/page" ||
            complain "$page(3) does not say: $text"
    done
}
contents() {
    says rlock_acquire 'rlock_acquire - locks for the calling thread' \
        'rlock_acquire(rlock *lk, int64_t wait_ms, int64_t lease_ms);' \
        'RLOCK_OK owned; rlock_token(3) is set.' \
        'RLOCK_EINVAL bad argument, or a busy owner; nothing was sent; also: ' \
        'RLOCK_EFORKED the handle, or owner, was made before fork()' \
        'all functions of this header is in rlock_lock.h(3)'
    says rlock_extend_start 'rlock_acquire_start, rlock_unlock_start, ' \
        'rlock_extend_start(rlock *lk, int64_t lease_ms, rlock_done *done,'
    says rlock_metrics_each \
        'void (*each)(const rlock_metric *m, void *arg), void *arg);'
    says rlock_trylock 'What is said of rlock_acquire(3) holds'
    says rlock_eval 'answers as rlock_guard.h(3) says'
    says rlock_guard.h 'RLOCK_LOST not executed, and it will not be'
    says rlock_layout 'RLOCK_LAYOUT_STRING = 1' 'rlock_lock_options'
    says RLOCK_SCOPED_LOCK '#define RLOCK_SCOPED_LOCK(lk, cl, name)'
}

# Options of a text of --help: "-w --wait", and "--json" where there is no letter
options_told() {
    sed -nE 's/^  (-[a-zA-Z]),? (--[a-z-]+).*/\1 \2/p
        s/^ +(--[a-z-]+).*/\1/p' | sort
}
# Those of a part of the page, from this line to the next heading
options_written() {
    sed -n "/^\.S[sh] $1\$/,/^\.Sh SERVERS/p" "$man/man1/rlock.1" |
        sed '1d; /^\.S[sh]/,$d' |
        sed -nE 's/^\.It Fl ([a-zA-Z]) , Fl (-[a-z-]+).*/-\1 -\2/p
            s/^\.It Fl (-[a-z-]+).*/-\1/p' | sort
}
# same WHAT; what the program has, and what is written of it
same() {
    [ -s "$work/has" ] || complain "$1: nothing was found"
    diff "$work/has" "$work/written" >"$work/diff" ||
        complain "$1: < the program, > the page:" "$(cat "$work/diff")"
}
command() {
    rlock=$prefix/bin/rlock
    "$rlock" --help | sed -nE 's/^rlock ([a-z]+) .*/\1/p' >"$work/has"
    verbs=$(cat "$work/has")
    sed -nE 's/^\.Ss ([a-z]+)$/\1/p' "$man/man1/rlock.1" >"$work/written"
    same verbs
    for verb in $verbs; do
        "$rlock" "$verb" --help | options_told >"$work/has"
        options_written "$verb" >"$work/written"
        same "options of $verb"
    done
    "$rlock" --help | sed '1,/^Options before/d' | options_told >"$work/has"
    options_written DESCRIPTION >"$work/written"
    same options
    grep -ohE 'cli_json_[a-z]+\([^"]*"[a-z_]+"|look_json_[a-z]+\([^"]*"[a-z]+"' \
        "$root"/src/cli/*.c | grep -oE '"[a-z_]+"' | tr -d '"' |
        grep -vxE 'null|true' | sort -u >"$work/has"
    grep '^\.It Va' "$man/man1/rlock.1" | tr ' ' '\n' |
        grep -E '^[a-z_]+$' | sort -u >"$work/written"
    same 'fields of --json'
    grep -ohE '"(RLOCK_[A-Z]+|SHELL|COLUMNS)[="]' "$root"/src/cli/*.c | tr -d '"=' |
        sort -u >"$work/has"
    grep '^\.It Ev' "$man/man1/rlock.1" | tr ' ' '\n' |
        grep -E '^[A-Z_]+$' | sort -u >"$work/written"
    same environment
}

links() {
    grep -h '^\.Xr rlock\|^\.It Xr rlock' "$man"/man*/*.[13] |
        grep -oE 'Xr rlock[a-zA-Z_.]* [13]' | sort -u >"$work/links"
    [ -s "$work/links" ] || complain "nobody refers to anything"
    while read -r _ name section; do
        [ -e "$man/man$section/$name.$section" ] ||
            complain "$name($section) is referred to, and is not there"
    done <"$work/links"
    find "$man" -type l ! -exec test -e {} ';' -print >"$work/dead"
    [ ! -s "$work/dead" ] || complain "$(cat "$work/dead") lead nowhere"
}

# Other programs' pages may be missing here.
lint() {
    for section in "$man"/man*; do
        (cd "$section" && mandoc -T lint ./* 2>&1 || :) |
            grep -v -e 'referenced manual not found: Xr [^r]' -e 'mandoc.db' \
                -e 'referenced manual not found: Xr rlock [13]' >>"$work/faults" ||
            :
    done
    [ ! -s "$work/faults" ] || complain "$(cat "$work/faults")"
}

html() {
    html=$prefix/share/doc/rlock/html
    (cd "$man" && ls man1 man3) | grep '\.[13]$' | while read -r page; do
        [ -s "$html/$page.html" ] || echo "$page is for no browser"
    done >"$work/faults"
    grep -oh 'href="[^"]*' "$html"/*.html | sed 's/^href="//; s/#.*//' | sort -u |
        grep -v '^https://' >"$work/links"
    grep -q '^rlock_acquire\.3\.html$' "$work/links" ||
        complain "no page refers to another"
    while read -r link; do
        [ -z "$link" ] || [ -e "$html/$link" ] || echo "$link is not there"
    done <"$work/links" >>"$work/faults"
    [ ! -s "$work/faults" ] || complain "$(cat "$work/faults")"
}

# refused WHY LINE...: such a header is no manual
refused() {
    why=$1
    shift
    rm -rf "$work/man3"
    mkdir "$work/man3"
    printf '%s\n' '/* New. */' '' "$@" >"$work/new.h"
    if awk -v date='January 1, 2000' -v output="$work/man3" \
        -f "$root/src/cmake/manual-headers.awk" -f "$root/src/cmake/manual.awk" \
        "$root/include/rlock/base.h" "$work/new.h" 2>"$work/says"; then
        complain "was not noticed: $why"
    fi
    grep -qF "$why" "$work/says" || complain "$(cat "$work/says")"
}
planted() {
    new='RLOCK_API rlock_status rlock_new(rlock *lk);'
    refused 'rlock_new() has no comment' "$new"
    refused 'rlock_new() has no comment' '/* Of the blank. */' '' "$new"
    refused 'what is RLOCK_EODD?' '/*' ' * Makes.' ' *' \
        ' * RLOCK_OK, RLOCK_EODD' ' */' "$new"
    refused 'a comment has no end' '/* Makes.' "$new"
}

case $what in
pages | contents | command | links | lint | html | planted) "$what" ;;
*)
    sed -n '/^# manuals.sh/s/^# /usage: /p' "$0" >&2
    exit 2
    ;;
esac
exit $status
