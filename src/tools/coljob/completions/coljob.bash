# shellcheck shell=bash
# Completion of coljob in bash: commands, jobs, options and their values. --help-all says which options there are, ps which
# jobs.

_coljob() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} tool=${COMP_WORDS[0]} command='' word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in ps | why | top | stacks | dump) command=$word ;; esac
  done
  COMPREPLY=()
  case $previous in
    --dir) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    -o | --output) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    --after) ;;
    *)
      if [[ $current == -* ]]; then
        word=$("$tool" --help-all 2>/dev/null | sed -nE 's/^  (-[^ ]+).*/\1/p' | tr , ' ')
        mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
      elif [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W 'ps why top stacks dump' -- "$current")
      elif [[ $command != ps ]]; then
        word=$("$tool" ps 2>/dev/null | sed -n '3,$s/ .*//p')
        mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current"; [[ $command != why ]] || compgen -f -- "$current")
      fi
      ;;
  esac
}

complete -F _coljob coljob
