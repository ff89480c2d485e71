#!/bin/bash
# Hangs of all kinds: coljob names who is to blame, and why. All of them, or some that are drawn anew each time.
#
#   planted_hangs.sh BACKEND HOW_MANY    or: planted_hangs.sh BACKEND NAME…
. "$(dirname "$0")/lib.sh"
: "${COLJOB:?set COLJOB to the coljob program}" "${PLANTED_HANG:?set PLANTED_HANG to the planted_hang program}"
export COL_BACKEND=$1 COL_TIMEOUT=120s
shift

table=$("$PLANTED_HANG" --list)
case $1 in
  all) names=$(cut -f1 <<<"$table") ;;
  [0-9]*) names=$(cut -f1 <<<"$table" | shuf -n "$1") ;;
  *) names=$(printf '%s\n' "$@") ;;
esac
echo "hangs: $(tr '\n' ' ' <<<"$names")"

# Ascending, between commas.
blamed() { tr -d ' \n' <"$out" | sed -E 's/.*"culprits":\[([^]]*)\].*/\1/' | tr , '\n' | sort -n | paste -sd,; }
# The hang is there when a rank has waited for so long. A rank that a busy machine lets wait may be blamed before the
# right one has come to its place, so a wrong answer may be corrected.
is_right() {
  code=0
  "$COLJOB" why --after 500ms --json >"$out" 2>"$err" || code=$?
  [ "$code" -eq 1 ] && grep -qF "\"cause\": \"$cause\"" "$out" && grep -qE "\"sentence\": \".*$words" "$out" &&
    [ "$(blamed)" = "$culprits" ]
}

for name in $names; do
  IFS=$'\t' read -r _ cause culprits words < <(grep -P "^$name\t" <<<"$table")
  mkdir "$work/$name"
  "$COLRUN" -n 3 "$PLANTED_HANG" "$name" "$work/$name" >"$work/job" 2>&1 &
  job=$!
  wait_until 30 "the ranks of $name are there" files "$work/$name" 3
  wait_until 20 "a right answer for $name" is_right
  "$COLJOB" why --after 500ms >"$work/text"
  [ $? -eq 1 ] || fail "$name: not stuck any more: $(cat "$work/text")"
  [ "${SHOW:-}" ] && head -1 "$work/text"
  kill -TERM $job
  wait $job
done
nothing_left
