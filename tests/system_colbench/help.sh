#!/usr/bin/env bash
# --help of colbench and colcheck fits a terminal, --help-all has the rest; manual pages and completions are those of the options.
. "$(dirname "$0")/lib.sh"
: "${COLCHECK:?}" "${SOURCE_DIR:?}"

fits() {  # fits LINES COMMAND…
  local lines=$1
  shift
  expect 0 "$@"
  [ "$(wc -l <"$out")" -le "$lines" ] || fail "'$*' has more than $lines lines"
  [ "$(wc -L <"$out")" -le 80 ] || fail "'$*' is wider than 80 columns"
  [ -z "$(cat -s "$out" | diff - "$out")" ] || fail "'$*' has several empty lines in a row"
}
commands=(compare noise algorithms tune explain simulate draw pairs nodes self-test allreduce '')
for command in "${commands[@]}"; do
  # shellcheck disable=SC2086 # two words, or none
  {
    fits 24 "$COLBENCH" $command --help
    case $command in
      nodes) says 'Usage: colrun [--host A,B,C] -n 1 colbench nodes' ;;  # colrun starts it
      *) says "Usage: colbench${command:+ ${command/allreduce/COLL}}" ;;
    esac
    cp "$out" "$work/help"
    fits 200 "$COLBENCH" $command --help-all
    says --version
    expect 0 "$COLBENCH" help $command
    cmp -s "$out" "$work/help" || fail "colbench help $command is not its --help"
  }
done
fits 24 "$COLCHECK" --help
fits 200 "$COLCHECK" --help-all
expect 2 "$COLBENCH" help nonsense
complains "unknown collective 'nonsense'"

mkdir "$work/man"
python3 "$SOURCE_DIR/scripts/man-pages" "$COLBENCH" "$COLCHECK" "$work/man" || fail "scripts/man-pages"
for page in colbench colcheck; do
  diff "$SOURCE_DIR/docs/man/$page.1" "$work/man/$page.1" || fail "docs/man/$page.1 is of other options: scripts/dev man-pages writes it anew"
  ! command -v man >/dev/null || man --warnings -l "$work/man/$page.1" 2>&1 >/dev/null | grep . && fail "$page.1 has warnings"
done
[ "$(grep -c '^\.It Fl' "$work/man/colcheck.1")" = "$("$COLCHECK" --help-all | grep -c '^  -')" ] || fail "colcheck.1 lacks options"
for code in 125 141; do grep -qx ".It $code" "$work/man/colcheck.1" || fail "colcheck.1 lacks exit code $code"; done

python3 "$(dirname "$0")/doc_options.py" "$SOURCE_DIR" "$COLRUN" "$COLBENCH" "$COLCHECK" || fail "options in the documents (above)"

# ---- Completion in bash
. "$SOURCE_DIR/src/tools/completions/col.bash"
compopt() { :; }  # works in a real completion only
colbench() { "$COLBENCH" "$@"; }
colcheck() { "$COLCHECK" "$@"; }
completes() {  # completes LINE EXPECTED…
  local word i
  COMP_LINE=$1
  COMP_WORDS=()
  shift
  for word in $COMP_LINE; do
    while [[ $word == *=* && $word != = ]]; do
      i=${word%%=*}
      [ -z "$i" ] || COMP_WORDS+=("$i")
      COMP_WORDS+=(=)
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
: >"$out" >"$err"
cd "$work/man" || exit 1
completes 'colbench noi' noise
completes 'colbench allg' allgather allgatherv
completes 'colbench help tu' tune
completes 'colbench allreduce --lau' --launches
completes 'colbench compare --min' --min-effect
completes 'colbench compare colb' colbench.1
completes 'colbench noise --min' --min-effect --min-iters --minbytes
completes 'colbench simulate --alpha' --alpha --alpha-intra
completes 'colbench draw --algo' --algo --algorithm
completes 'colbench allreduce --cache c' cold
completes 'colbench allreduce --backend=g' gloo
completes 'colbench allreduce --json colch' colcheck.1
completes 'colcheck --so' --soak
completes 'colcheck --device cu' cuda
completes 'colcheck --only exac' exact
# Every word that it offers is one.
for word in ${_col_takes[colbench]}; do
  [ "$word" = help ] || expect 0 "$COLBENCH" help "$word"
done
nothing_left
