# shellcheck shell=bash
# Completion of colbench and colcheck in bash: commands, options, their values.

_coltools_words='allreduce reduce broadcast allgather allgatherv reduce_scatter reduce_scatterv gather gatherv scatter scatterv
alltoall alltoallv scan exscan barrier pingpong oneway bidirectional sendrecv all'
_coltools_commands='compare noise algorithms tune explain simulate draw pairs nodes self-test help'

# _coltools_learn PROGRAM [COMMAND]: what its --help-all says, once in a shell: options with a value, and the others.
declare -gA _coltools_flags _coltools_valued
_coltools_learn() {
  local key="$*" line
  [[ -z ${_coltools_flags[$key]:-} ]] || return 0
  while IFS= read -r line; do
    [[ $line =~ ^'  '(-[^ ]+)(' '[^ ]+)?('  '|$) ]] || continue
    line=${BASH_REMATCH[1]//,/ }
    if [[ -n ${BASH_REMATCH[2]} ]]; then _coltools_valued[$key]+=" $line"; else _coltools_flags[$key]+=" $line"; fi
  done < <("$@" --help-all 2>/dev/null)
}

# _coltools_value PROGRAM OPTION TEXT: what may stand there.
_coltools_value() {
  case $2 in
    --json | --csv | --html | --plot | --junit | -o | --output) compgen -f -- "$3" ;;
    --backend) compgen -W 'auto shm hosts hosts_ucx gloo ucx nccl' -- "$3" ;;
    --require) compgen -W 'shm hosts hosts_ucx gloo ucx nccl cpu cuda torch' -- "$3" ;;
    --device) compgen -W 'all cpu cuda' -- "$3" ;;
    --only | --skip) compgen -W "$("$1" --list 2>/dev/null | cut -d' ' -f1)" -- "$3" ;;
    --op) compgen -W 'sum product min max avg band bor bxor' -- "$3" ;;
    --dtype | -d | --datatype)
      compgen -W 'int8 uint8 int16 uint16 int32 uint32 int64 uint64 float8_e4m3fn float8_e5m2 float16 bfloat16 float32 float64 complex64 complex128' -- "$3" ;;
    --place) compgen -W 'out in both' -- "$3" ;;
    --cadence) compgen -W 'isolated stream both' -- "$3" ;;
    --cache) compgen -W 'hot cold rotate' -- "$3" ;;
    --check) compgen -W 'off sample all' -- "$3" ;;
    --bound) compgen -W 'strict warn off' -- "$3" ;;
    --sync) compgen -W 'window barrier' -- "$3" ;;
    --root) compgen -W 'all rotate' -- "$3" ;;
    --interpreter | --fault-start) compgen -c -- "$3" ;;
  esac
}

_coltools() {
  # Bash divides at '=' as well; what no space divides is one word.
  local line=$COMP_LINE word words=() i IFS=$' \t\n'
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $line == [[:space:]]* ]]; then words+=("$word"); else words[${#words[@]}-1]+=$word; fi
    line=${line#"${line%%[![:space:]]*}"}
    line=${line#"$word"}
  done
  local last=$((${#words[@]} - 1)) program=${words[0]} command=()
  local current=${words[last]} before=${words[last-1]}
  if [[ $program == *colbench ]] && ((last > 1)) && [[ " $_coltools_commands " == *" ${words[1]} "* ]]; then
    command=("${words[1]}")
  fi
  _coltools_learn "$program" "${command[@]}"
  local key="$program${command[*]:+ ${command[*]}}"

  if [[ " ${_coltools_valued[$key]:-} " == *" $before "* ]]; then
    mapfile -t COMPREPLY < <(_coltools_value "$program" "$before" "$current")
  elif [[ $current == --*=* ]]; then
    mapfile -t COMPREPLY < <(_coltools_value "$program" "${current%%=*}" "${current#*=}")
    [[ ${COMP_WORDS[COMP_CWORD]} == "$current" ]] && COMPREPLY=("${COMPREPLY[@]/#/${current%%=*}=}")
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_coltools_flags[$key]:-} ${_coltools_valued[$key]:-}" -- "$current")
  elif [[ $program == *colbench ]] && ((last == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$_coltools_words $_coltools_commands" -- "$current")
  elif [[ ${words[1]} == help ]] && ((last == 2)); then
    mapfile -t COMPREPLY < <(compgen -W "$_coltools_commands" -- "$current")
  elif [[ ${words[1]} == compare ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  elif [[ ${#command[@]} -gt 0 ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$_coltools_words" -- "$current")
  else
    COMPREPLY=()
  fi
}

complete -F _coltools colbench colcheck
