# shellcheck shell=bash
# Completion of colrun in bash: options, their values, and then the program with its own completion.

# Reads from --help-all which options there are, once in a shell: those with a value, and the others.
_colrun_flags=
_colrun_valued=
_colrun_learn() {
  local line
  [[ -z $_colrun_valued ]] || return
  while IFS= read -r line; do
    [[ $line =~ ^'  '(-[^ ]+)(' '[^ ]+)?'  ' ]] || continue
    line=${BASH_REMATCH[1]//,/ }
    if [[ -n ${BASH_REMATCH[2]} ]]; then _colrun_valued+=" $line"; else _colrun_flags+=" $line"; fi
  done < <("$1" --help-all 2>/dev/null)
}

# Sets `words` to the words up to the cursor. Bash divides at '=' and ':' as well; what no space divides is one word.
_colrun_split() {
  local line=$COMP_LINE word i
  words=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $line == [[:space:]]* ]]; then words+=("$word"); else words[${#words[@]}-1]+=$word; fi
    line=${line#"${line%%[![:space:]]*}"}
    line=${line#"$word"}
  done
}

_colrun_is_in() { [[ " $2 " == *" $1 "* ]]; }

# _colrun_value OPTION TEXT: what may stand there.
_colrun_value() {
  case $1 in
    -n | --np | --nproc-per-node) compgen -W 'auto cpu gpu' -- "$2" ;;
    --rdzv-backend) compgen -W 'static c10d' -- "$2" ;;
    --scheduler) compgen -W 'auto none slurm k8s pbs lsf' -- "$2" ;;
    --bind-to) compgen -W 'auto none core numa list:' -- "$2" ;;
    --map-by) compgen -W 'core numa' -- "$2" ;;
    --stdin) compgen -W '0 all none' -- "$2" ;;
    --exit-policy) compgen -W 'first max rank0' -- "$2" ;;
    --compat) compgen -W 'mpi' -- "$2" ;;
    --display) compgen -W 'map' -- "$2" ;;
    --inject) compgen -W 'kill: stop: slow:' -- "$2" ;;
    --hostfile | --env-file | --config | --json | --trace) compgen -f -- "$2" ;;
    --output)
      if [[ $2 == file=* ]]; then compgen -P file= -f -- "${2#file=}"; else compgen -W 'file=' -- "$2"; fi
      ;;
    -x | --env | --env-remove) compgen -e -- "$2" ;;
    -H | --host) compgen -A hostname -- "$2" ;;
    --ssh | --debugger) compgen -c -- "$2" ;;
  esac
}

_colrun() {
  local words current option='' i=1 start=-1 part=1 reply IFS=$' \t\n'
  _colrun_split
  _colrun_learn "${words[0]}"
  local last=$((${#words[@]} - 1))
  current=${words[last]}

  # Up to the cursor: `option` waits for its value, or `start` is where the program is.
  while ((i < last)); do
    if [[ ${words[i]} == -- ]]; then
      start=$((i + 1))
    elif [[ ${words[i]} != -?* ]]; then
      start=$i
    elif _colrun_is_in "${words[i]}" "$_colrun_valued"; then
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
    i=$((i + 1))
  done

  if [[ -n $option ]]; then
    mapfile -t COMPREPLY < <(_colrun_value "$option" "$current")
    [[ $option == --output || ${COMPREPLY[0]} == *: ]] && compopt -o nospace 2>/dev/null
  elif ((start < 0)) && [[ $current == --*=* ]]; then
    mapfile -t COMPREPLY < <(_colrun_value "${current%%=*}" "${current#*=}")
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${current%%=*}=${COMPREPLY[i]}; done
  elif ((start < 0)) && [[ $current == -* ]]; then
    reply="$_colrun_flags $_colrun_valued"
    ((part > 1)) && reply='-n --np --nproc-per-node -x --env'
    mapfile -t COMPREPLY < <(compgen -W "$reply" -- "$current")
  elif ((start < 0 || start == last)); then
    mapfile -t COMPREPLY < <(compgen -c -- "$current")
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

complete -F _colrun colrun
