# Completion of rlock(1) for bash; needs bash-completion. What may stand there
# tells rlock itself: src/cli/complete.c.

# Where in COMP_WORDS the n-th word is: there, a word is taken apart at : and =.
_rlock_offset() {
    local n at=0 word
    for ((n = 0; n < $1; n++)); do
        word=${COMP_WORDS[at++]}
        while [[ $word != "${words[n]}" && $at -lt $COMP_CWORD ]]; do
            word+=${COMP_WORDS[at++]}
        done
    done
    echo "$at"
}

_rlock() {
    local cur words cword line
    _get_comp_words_by_ref -n := cur words cword || return
    while IFS= read -r line; do
        case $line in
        $'\tfile')
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            ;;
        $'\tcommand '*)
            # Counted from behind the program's name.
            _command_offset "$(_rlock_offset $((${line##* } + 1)))"
            return
            ;;
        *)
            printf -v line %q "${line%%$'\t'*}"
            COMPREPLY+=("$line")
            ;;
        esac
    done < <("${words[0]/#\~/$HOME}" complete -- "${words[@]:1:cword}" 2>/dev/null)
    __ltrim_colon_completions "$cur"
}

complete -F _rlock rlock
