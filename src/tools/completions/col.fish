# Completion of colrun, colbench, colcheck and coljob in fish. Each says by --list-options, a line each, which options it
# has: names;value;what may stand there;text, with a * before it if the option repeats. The line without names is about
# words that belong to no option.

# _col_offer PROGRAM PREFIX TEXT CHOICE…: what may stand there for TEXT, behind PREFIX.
function _col_offer
    set -l text $argv[3]
    for choice in $argv[4..]
        switch $choice
            case '<file>'
                printf '%s\n' $argv[2](__fish_complete_path $text)
            case '<directory>'
                printf '%s\n' $argv[2](__fish_complete_directories $text '')
            case '<command>'
                complete -C "$text"
            case '<host>'
                printf '%s\n' $argv[2](__fish_print_hostnames)
            case '<variable>'
                printf '%s\n' $argv[2](set -nx)
            case '<job>'
                $argv[1] ps 2>/dev/null | sed -n '3,$s/ .*//p'
            case '*='
                string match -q -- "$choice*" $text
                and printf '%s\n' $argv[2]$choice(__fish_complete_path (string replace -- $choice '' $text))
                or echo $argv[2]$choice
            case '*'
                echo $argv[2]$choice
        end
    end
end

# _col_value NAME ROW…: what may stand behind the option, after a first line; nothing if it takes no value.
function _col_value
    for row in $argv[2..]
        set -l fields (string split -m 3 ';' -- $row)
        contains -- $argv[1] (string split , -- $fields[1])
        and test -n "$fields[2]"
        and printf '%s\n' value (string split -n ' ' -- $fields[3])
    end
end

function _col
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l called $words[1]
    set -l is_colrun (string match -r '(?:^|/)colrun$' -- $called)
    set -l asked $called
    not set -q is_colrun[1]; and set -q words[2]; and set -a asked (string match -rv '^-' -- $words[2])
    set -l rows ($asked --list-options 2>/dev/null)
    set -q rows[1]; or return
    set -e words[1]
    # After a lone ':' there is another program, with few options of its own.
    while set -q is_colrun[1]; and set -l colon (contains -i -- : $words)
        set -e words[1..$colon]
        set rows (string match -r -- '^(?:|-n,.*|-x,.*);.*;.*;.*' $rows)
    end
    while set -q words[1]
        set -l value (_col_value $words[1] $rows)
        if set -q value[1]; and not set -q words[2]
            _col_offer $called '' "$current" $value[2..]
            return
        else if set -q is_colrun[1]; and not set -q value[1]; and not string match -qr '^-.' -- $words[1]; or test $words[1] = --
            test $words[1] = --; and set -e words[1]
            complete -C (string join ' ' -- (string escape -- $words) "$current")
            return
        end
        set -e words[1]
        set -q value[1]; and set -e words[1]
    end
    if set -l joined (string match -r '^(--[^=]*)=(.*)' -- $current)
        _col_offer $called $joined[2]= "$joined[3]" (_col_value $joined[2] $rows)[2..]
    else if string match -q -- '-*' $current
        for row in $rows
            set -l fields (string split -m 3 ';' -- $row)
            for name in (string split -n , -- $fields[1])
                printf '%s\t%s\n' $name (string replace -r '^\*' '' -- $fields[4])
            end
        end
    else
        _col_offer $called '' "$current" (string match -rg '^;;([^;]*);' -- $rows | string split -n ' ')
    end
end

for tool in colrun colbench colcheck coljob
    complete -c $tool -f -a '(_col)'
end
