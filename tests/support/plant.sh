# plant.sh: sourced by scripts that write sources anew, with faults that a test switches on by their numbers, and must find.
#   take FILES       the source to change: all of them, one after the other
#   plant OLD NEW    FAULT in NEW stands for the number of the fault, or whether it is there; they count from 1
#   give FILE        where the changed source goes
number=0

take() {
  source=$*
  text=$(cat "$@")
}

plant() {
  local rest=${text#*"$1"}
  if [ "$rest" = "$text" ] || [ "${rest#*"$1"}" != "$rest" ]; then
    echo "$source does not have '$1' once; change this script with it" >&2
    exit 1
  fi
  number=$((number + 1))
  local new=${2//FAULT/::col::test::planted($number)}
  text=${text%%"$1"*}$new$rest
}

give() {
  printf '%s\n' "$text" >"$1"
}
