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

# plain: what a word means, of which nothing is expanded but a ~ in front; quote:
# the quotation that is open at its end; cut: how much of it stays as it is, as
# readline takes words apart, too, and where that quotation begins.
_rlock_read() {
    local word=$1 c i before
    plain='' quote='' cut=0
    if [[ $word == '~' || $word == '~/'* ]]; then
        plain=$HOME word=${word:1}
    fi
    for ((i = 0; i < ${#word}; i++)); do
        c=${word:i:1}
        if [[ $c == "$quote" || (! $quote && $c == [\"\']) ]]; then
            if [[ $quote ]]; then
                quote='' cut=$before
            else
                quote=$c before=$cut cut=${#plain}
            fi
        elif [[ $c == \\ && (! $quote ||
            ($quote == \" && ${word:i+1:1} == [\"\\\$\`])) ]]; then
            ((++i))
            plain+=${word:i:1}
        else
            plain+=$c
            [[ $quote || $c != [:=@] || $COMP_WORDBREAKS != *"$c"* ]] ||
                cut=${#plain}
        fi
    done
}

# A candidate, as it is to be written behind what stays.
_rlock_offer() {
    local rest=${1:cut} word='' c i
    if [[ ! $quote ]]; then
        printf -v word %q "$rest"
    else
        for ((i = 0; i < ${#rest}; i++)); do
            c=${rest:i:1}
            case $quote$c in
            \'\') c="'\\''" ;;
            \"[\"\\\$\`]) c=\\$c ;;
            esac
            word+=$c
        done
    fi
    COMPREPLY+=("$word")
}

_rlock() {
    local cur words cword line word plain quote cut option
    local -a meant
    _get_comp_words_by_ref -n :=@ cur words cword || return
    for word in "${words[@]:0:cword}" "$cur"; do
        _rlock_read "$word"
        meant+=("$plain")
    done
    while IFS= read -r line; do
        case $line in
        $'\tfile '*)
            # The option in front of a = stays, or it is a word by itself.
            option=${cur:0:${line##* }}
            [[ $COMP_WORDBREAKS != *=* ]] || option=
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -P "$option" -f -- "${cur:${line##* }}")
            ;;
        $'\tcommand '*)
            # Counted from behind the program's name.
            _command_offset "$(_rlock_offset $((${line##* } + 1)))"
            return
            ;;
        *) _rlock_offer "${line%%$'\t'*}" ;;
        esac
    done < <("${meant[0]}" complete -- "${meant[@]:1}" 2>/dev/null)
}

complete -F _rlock rlock
