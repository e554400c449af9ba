#!/usr/bin/env bash
# completion.sh bash|zsh|fish PREFIX URI
#
# Asks the shell, with what was installed below PREFIX, what it would complete lines
# with: verbs, options, files, words of a command, and names of locks at the server,
# at which this script takes some.
set -eu -o pipefail

shell=$1 prefix=$2
export PATH=$prefix/bin:$PATH RLOCK_URI=$3
export share=$prefix/share
status=0

ask_bash() {
    # shellcheck disable=SC2016
    bash --norc -c '
        . /usr/share/bash-completion/bash_completion
        . "$share/bash-completion/completions/rlock"
        compopt() { :; } # it wants to be called while a key is pressed
        COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
        read -ra COMP_WORDS <<<"${1//:/ : }"
        [[ $1 != *" " ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _rlock rlock
        printf "%s\n" "${COMPREPLY[@]}"' bash "$1"
}

# It completes at a terminal only: it gets one, and is asked for a list.
ask_zsh() {
    # shellcheck disable=SC2016
    zsh -f -c '
        zmodload zsh/zpty
        zpty z zsh -f -i
        zpty -w z "PS1= PROMPT_EOL_MARK= TERM=dumb; stty -echo 2>/dev/null"
        zpty -w z "fpath=($share/zsh/site-functions \$fpath)"
        zpty -w z "autoload -U compinit; compinit -u -D"
        zpty -w z "zstyle \":completion:*\" list-prompt \"\"; LISTMAX=0"
        zpty -w z "echo REA\"\"DY"
        zpty -r z line "*READY*"
        zpty -n -w z "$1"$'"'\t\t'"'
        zpty -n -w z $'"'\C-u'"'
        zpty -w z "echo DO\"\"NE"
        zpty -r z line "*DONE*"
        print -r -- $line
        zpty -d z' zsh "$1"
}

ask_fish() {
    # shellcheck disable=SC2016
    HOME=$prefix fish --no-config -c '
        source $share/fish/vendor_completions.d/rlock.fish
        complete -C $argv[1]' "$1"
}

has_said() {
    local word
    for word in "$@"; do
        grep -qF -- "$word" "$work/said" || return 1
    done
}

# completes LINE WORD...; these are among what it may become. On a busy machine names
# do not come in time, and zsh takes keys for others: so it is asked again.
completes() {
    local line=$1
    shift
    for _ in {1..20}; do
        "ask_$shell" "$line" >"$work/said" 2>&1 || :
        ! has_said "$@" || return 0
        sleep 0.1
    done
    echo "$shell: '$line' does not become: $*"
    cat -v "$work/said"
    status=1
}

work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"; kill $(jobs -p) 2>/dev/null || :' EXIT
mkdir "$work/folder"
: >"$work/folder/list"

for name in orders:1 orders:2; do
    rlock run "$name" sleep 600 &
done
for _ in {1..100}; do
    [ "$(rlock ls orders:* | wc -l)" -lt 3 ] || break
    sleep 0.1
done

completes 'rlock d' doctor
completes 'rlock ls --' --foreign --json
completes "rlock --uri-file $work/folder/l" list
completes "rlock run -n job ls $work/folder/l" list
completes 'rlock run job -- redis-cl' redis-cli
completes "rlock -u redis://127.0.0.1:1 run job -- redis-cl" redis-cli
completes 'rlock who o' orders: 1 2
completes 'rlock --tls-verify f' full
exit $status
