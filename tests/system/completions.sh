#!/bin/bash
# Completion in bash: options, their values, the program and its arguments.
. "$(dirname "$0")/lib.sh"

. "$(dirname "$0")/../../src/tools/completions/col.bash"
for tool in colrun colbench colcheck coljob; do
  [[ $(complete -p $tool) == "complete -F _col $tool" ]] || fail "nothing completes $tool"
done

# completes LINE EXPECTED…: with the cursor at the end of the line, divided as bash does it at '=' and ':'.
completes() {
  local word i
  COMP_LINE=$1
  COMP_WORDS=()
  shift
  for word in $COMP_LINE; do
    while [[ $word == *[=:]* && $word != [=:] ]]; do
      i=${word%%[=:]*}
      [ -z "$i" ] || COMP_WORDS+=("$i")
      COMP_WORDS+=("${word:${#i}:1}")
      word=${word:${#i}+1}
    done
    [ -z "$word" ] || COMP_WORDS+=("$word")
  done
  [[ $COMP_LINE != *' ' ]] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _col
  mapfile -t COMPREPLY < <(((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}" | sort -u)
  [ "${COMPREPLY[*]}" = "$*" ] || fail "'$COMP_LINE' is completed by '${COMPREPLY[*]}' instead of '$*'"
}
compopt() { :; }  # works in a real completion only

# What completes asks the program that is completed.
colrun() { "$COLRUN" "$@"; }
_col_learn colrun
shown=$(colrun --help-all | grep -oE '^  -[^ ]+' | tr -d ' ' | tr , '\n' | sort)
[[ $(tr ' ' '\n' <<<"${_col_options[colrun]# }" | sort) == "$shown" ]] || fail "options: ${_col_options[colrun]}"
for flag in -l --label --standalone --help-all; do
  [[ -z ${_col_takes[colrun $flag]+set} ]] || fail "$flag takes no value"
done
for option in -n --np --nnodes --output -x --env; do
  [[ -n ${_col_takes[colrun $option]+set} ]] || fail "$option takes a value"
done
! command -v zsh >/dev/null || zsh -n "$(dirname "$0")/../../src/tools/completions/_col" || fail "zsh"

mkdir "$work/here"
cd "$work/here" || exit 1
touch job.conf hosts
completes 'colrun --bi' --bind-to
completes 'colrun --stacks' --stacks-on-failure --stacks-on-timeout
completes 'colrun -n 4 --max' --max-restarts
completes 'colrun -n 4 --label --label-format x --exit-p' --exit-policy
completes 'colrun --bind-to n' none numa
completes 'colrun --bind-to a' auto
completes 'colrun --bind-to=n' none numa
completes 'colrun --np=' auto cpu gpu
completes 'colrun --host a:4,b:2 --std' --stdin
completes 'colrun --stdin ' 0 all none
completes 'colrun --output f' file=
completes 'colrun --output file=j' job.conf
completes 'colrun --config ' hosts job.conf
completes 'colrun --hostfile=h' hosts
completes 'colrun --env COLTES' COLTEST_TAG
completes 'colrun -n 2 mktem' mktemp
completes 'colrun -- mktem' mktemp
# After the program nothing is an option of colrun; after a lone ':' some are again.
completes 'colrun -n 2 cat j' job.conf
completes 'colrun -n 2 cat --bi'
completes 'colrun -n 2 cat job.conf : --n' --np --nproc-per-node
completes 'colrun -n 2 cat job.conf : --bi'
completes 'colrun -n 2 cat job.conf : -n 3 mktem' mktemp
completes 'colrun -n 2 cat job.conf : -n 3 cat j' job.conf
