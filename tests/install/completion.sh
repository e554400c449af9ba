#!/usr/bin/env bash
# completion.sh bash|zsh|fish PREFIX URI
#
# Asks the shell, with what was installed below PREFIX, what it would complete lines
# with: verbs, options, files, words of a command, and names of locks at the server,
# at which this script takes some.
set -eu -o pipefail

shell=$1 prefix=$2
uri=$3
export PATH=$prefix/bin:$PATH RLOCK_URI=$uri
export share=$prefix/share
status=0

# Both complete at a terminal only: they get one.
begin_bash() {
    # shellcheck disable=SC2016
    echo '. /usr/share/bash-completion/bash_completion
        . "$share/bash-completion/completions/rlock"
        bind "set enable-bracketed-paste off"
        bind "set show-all-if-ambiguous on"'
}
begin_zsh() {
    # shellcheck disable=SC2016
    echo 'PROMPT_EOL_MARK=; unset zle_bracketed_paste
        fpath=($share/zsh/site-functions $fpath)
        autoload -U compinit; compinit -u
        zstyle ":completion:*" list-prompt ""; LISTMAX=0'
}

# await WORD: what comes up to it
await() {
    local all='' byte
    until [[ $all == *"$1"* ]]; do
        IFS= read -r -N 1 -t 3 byte <&"$screen" || return 1
        all+=$byte
    done
    printf '%s' "$all"
}

# type_keys KEYS: at a terminal at which the shell runs; what there is to be seen
type_keys() {
    local without pid screen keys
    case $shell in
    bash) without=--norc ;;
    zsh) without=-f ;;
    esac
    coproc terminal {
        TERM=dumb exec script -qfc "exec $shell $without -i" /dev/null
    }
    # What it has is taken away when it ends.
    pid=$terminal_PID
    exec {screen}<&"${terminal[0]}" {keys}>&"${terminal[1]}"
    {
        "begin_$shell"
        # shellcheck disable=SC2028
        echo 'PS1= ; echo REA""DY'
    } >&"$keys"
    await READY >"$work/before"
    printf '%s' "$1" >&"$keys"
    printf 'echo DO""NE; exit\n' >&"$keys"
    await DONE
    wait "$pid" || :
    exec {screen}<&- {keys}>&-
}

ask_bash() {
    type_keys "$1"$'\t\t\cU'
}
ask_zsh() {
    ask_bash "$1"
}

ask_fish() {
    # shellcheck disable=SC2016
    fish --no-config -c '
        source $share/fish/vendor_completions.d/rlock.fish
        complete -C $argv[1]' "$1"
}

has_said() {
    local word
    for word in "$@"; do
        grep -qF -- "$word" "$work/said" || return 1
    done
}

# says LINE WORD...: what is asked by $ask is among the answer. On a busy machine names
# do not come in time, and zsh takes keys for others: so it is asked again.
says() {
    local line=$1
    shift
    for _ in {1..20}; do
        "$ask" "$line" >"$work/said" 2>&1 || :
        ! has_said "$@" || return 0
        sleep 0.1
    done
    echo "$shell: '$line' does not become: $*"
    cat -v "$work/said"
    status=1
}

# completes LINE WORD...; these are among what it may become.
completes() {
    ask=ask_$shell says "$@"
}

# Completes a line, and executes it.
enter() {
    type_keys "$1"$'\t\n'
}

# finds LINE NAME: completed, LINE names just that lock.
finds() {
    case $shell in
    fish) completes "$1" "$2"$'\t' ;;
    *) ask=enter says "$1" "$(rlock -u "$uri" who "$2")" ;;
    esac
}

work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
export HOME=$work
trap 'rm -rf "$work"; kill $(jobs -p) 2>/dev/null || :' EXIT
mkdir "$work/folder"
: >"$work/folder/list"

echo "$uri" >"$work/folder/the server"
names=(orders:1 orders:2 day=1 day=2 'two words' "it's" 'back\slash' 'say "hi" $x')
for name in "${names[@]}"; do
    rlock run "$name" sleep 600 &
    rlock wait -w 10 --until held "$name"
done

completes 'rlock d' doctor
completes 'rlock ls --' --foreign --json
completes "rlock --uri-file $work/folder/l" list
completes "rlock run -n job ls $work/folder/l" list
completes 'rlock run job -- redis-cl' redis-cli
completes "rlock -u redis://127.0.0.1:1 run job -- redis-cl" redis-cli
completes 'rlock who o' orders: 1 2
completes 'rlock --tls-verify f' full
completes 'rlock who day=' day= 1 2
finds 'rlock who orders:1' orders:1
finds 'rlock who day=1' day=1
finds 'rlock who tw' 'two words'
finds 'rlock who two\ w' 'two words'
finds 'rlock who "two w' 'two words'
finds "rlock who 'two w" 'two words'
finds 'rlock who it' "it's"
finds 'rlock who "it' "it's"
finds 'rlock who ba' 'back\slash'
finds "rlock who 'ba" 'back\slash'
finds 'rlock who sa' 'say "hi" $x'
finds 'rlock who "sa' 'say "hi" $x'
# At the server that the line names, by what the shell will make of that.
export RLOCK_URI=redis://127.0.0.1:1
finds "rlock -u '$uri' who tw" 'two words'
finds 'rlock --uri-file ~/folder/the\ server who tw' 'two words'
completes 'rlock --uri-file ~/folder/the' '~/folder/the'
exit $status
