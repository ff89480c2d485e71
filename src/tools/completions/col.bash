# shellcheck shell=bash
# Completion of colrun, colbench, colcheck and coljob in bash. Each says by --list-options, a line each, which options it
# has: names;value;what may stand there;text. The line without names is about words that belong to no option.

# _col_learn PROGRAM [COMMAND]: once in a shell.
declare -gA _col_options _col_takes
_col_learn() {
  local key="$*" names value choices name
  [[ -z ${_col_options[$key]:-} ]] || return 0
  while IFS=';' read -r names value choices _; do
    for name in ${names//,/ }; do
      _col_options[$key]+=" $name"
      [[ -z $value ]] || _col_takes[$key $name]=$choices
    done
    [[ -n $names ]] || _col_takes[$key]=$choices
  done < <("$@" --list-options 2>/dev/null)
}

# _col_offer PROGRAM CHOICES TEXT: what may stand there.
_col_offer() {
  local choice
  for choice in $2; do
    case $choice in
      '<file>') compgen -f -- "$3" ;;
      '<directory>') compgen -d -- "$3" ;;
      '<command>') compgen -c -- "$3" ;;
      '<host>') compgen -A hostname -- "$3" ;;
      '<variable>') compgen -e -- "$3" ;;
      '<job>') compgen -W "$("$1" ps 2>/dev/null | sed -n '3,$s/ .*//p')" -- "$3" ;;
      *) if [[ $choice == *= && $3 == "$choice"* ]]; then compgen -P "$choice" -f -- "${3#"$choice"}"; else compgen -W "$choice" -- "$3"; fi ;;
    esac
  done
}

# Sets `words` to the words up to the cursor. Bash divides at '=' and ':' as well; what no space divides is one word.
_col_split() {
  local line=$COMP_LINE word i
  words=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $line == [[:space:]]* ]]; then words+=("$word"); else words[${#words[@]}-1]+=$word; fi
    line=${line#"${line%%[![:space:]]*}"}
    line=${line#"$word"}
  done
}

_col() {
  local words current option='' i=1 start=-1 part=1 key reply IFS=$' \t\n'
  _col_split
  local program=${words[0]} last=$((${#words[@]} - 1))
  current=${words[last]}
  key=$program
  [[ ${program##*/} != colrun ]] && ((last > 1)) && [[ ${words[1]} != -* ]] && key+=" ${words[1]}"
  # shellcheck disable=SC2086 # two words
  _col_learn $key

  # Up to the cursor: `option` waits for its value, or `start` is where the program of colrun is.
  for (( ; i < last; i++)); do
    if [[ ${words[i]} == -- ]]; then
      start=$((i + 1))
    elif [[ ${words[i]} != -?* ]]; then
      [[ ${program##*/} != colrun ]] || start=$i
    elif [[ -n ${_col_takes[$key ${words[i]}]+set} ]]; then
      option=${words[i]}
      ((i + 1 == last)) && break
      option=
      i=$((i + 1))
    fi
    if ((start >= 0)); then
      # A lone ':' begins the next program.
      for ((i = start; i < last; i++)); do [[ ${words[i]} == : ]] && break; done
      ((i == last)) && break
      start=-1
      part=2
    fi
  done

  if [[ -n $option ]]; then
    mapfile -t COMPREPLY < <(_col_offer "$program" "${_col_takes[$key $option]}" "$current")
    [[ ${COMPREPLY[0]} == *[:=] ]] && compopt -o nospace 2>/dev/null
  elif ((start < 0)) && [[ $current == --*=* ]]; then
    mapfile -t COMPREPLY < <(_col_offer "$program" "${_col_takes[$key ${current%%=*}]:-}" "${current#*=}")
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${current%%=*}=${COMPREPLY[i]}; done
  elif ((start < 0)) && [[ $current == -* ]]; then
    reply=${_col_options[$key]:-}
    ((part > 1)) && reply='-n --np --nproc-per-node -x --env'
    mapfile -t COMPREPLY < <(compgen -W "$reply" -- "$current")
  elif ((start < 0 || start == last)); then
    mapfile -t COMPREPLY < <(_col_offer "$program" "${_col_takes[$key]:-}" "$current")
  elif declare -F _command_offset >/dev/null && [[ ${COMP_WORDS[*]} != *[=:]* ]]; then
    _command_offset "$start"
    return
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi

  # Bash puts the reply in place of what follows the last '=' or ':' only.
  local fragment=${COMP_WORDS[COMP_CWORD]}
  [[ $fragment == [=:] ]] && fragment=
  local prefix=${current%"$fragment"}
  for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$prefix"}; done
}

complete -F _col colrun colbench colcheck coljob
