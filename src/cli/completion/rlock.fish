# Completion of rlock(1) for fish. What may stand there tells rlock itself:
# src/cli/complete.c.

# __rlock_tell WORD: what it tells of the words before the cursor, without their
# quotation marks, and of WORD behind them; a ~ in front becomes what it means.
function __rlock_tell
    set -l words (string replace -r '^~(?=/|$)' $HOME -- (commandline -opc))
    $words[1] complete -- $words[2..] $argv[1] 2>/dev/null
end

# Asked with the option and its = alone, or with what is no name, for which no
# server is asked.
function __rlock_wants_file
    set -l option (commandline -ct | string match -r '^--[^=]*=')
    string match -q \t'file *' -- (__rlock_tell (string join '' -- $option -))
end

function __rlock_complete
    set -l cur (commandline -ct | string unescape)
    for line in (__rlock_tell "$cur")
        switch $line
            case \t'command *'
                # Counted from 0, from behind the program's name.
                set -l from (math 2 + (string split -f 2 ' ' -- $line))
                set -l words (commandline -opc)
                complete -C (string join ' ' -- (string escape -- $words[$from..]) (commandline -ct))
            case \t'*'
            case '*'
                echo $line
        end
    end
end

complete -c rlock -f -a '(__rlock_complete)'
complete -c rlock -n __rlock_wants_file -F
