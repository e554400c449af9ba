# Completion of rlock(1) for fish. What may stand there tells rlock itself:
# src/cli/complete.c.

function __rlock_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    for line in ($words[1] complete -- $words[2..] $cur 2>/dev/null)
        switch $line
            case \tfile
                __fish_complete_path $cur
            case \t'command *'
                # Counted from 0, from behind the program's name.
                set -l from (math 2 + (string split -f 2 ' ' -- $line))
                complete -C (string join ' ' -- (string escape -- $words[$from..]) $cur)
            case '*'
                echo $line
        end
    end
end

complete -c rlock -f -a '(__rlock_complete)'
