#!/bin/bash
# Hangs of all kinds: coljob names who is to blame, and why. All of them, or some that are drawn anew each time.
#
#   planted_hangs.sh BACKEND HOW_MANY    or: planted_hangs.sh BACKEND NAME…    or: planted_hangs.sh BACKEND all
#
# BACKEND meeting: the ranks have no launcher, and meet by a store alone. BACKEND nccl: their buffers are on GPUs.
OWN_PROCESSES=${OWN_PROCESSES:-yes}
. "$(dirname "$0")/lib.sh"
: "${COLJOB:?set COLJOB to the coljob program}" "${PLANTED_HANG:?set PLANTED_HANG to the planted_hang program}"
backend=$1
export COL_TIMEOUT=120s
case $backend in
  nccl) export COL_BACKEND=nccl PLANTED_MEMORY=cuda ;;
  meeting) ;;
  *) export COL_BACKEND=$backend ;;
esac
shift

table=$("$PLANTED_HANG" --list)
case $backend in
  # What a GPU has started, it does whether its rank waits for it or not. Thousands of calls take the stand-ins too long.
  nccl) table=$(grep -vE '^unwaited_|^after_many_calls' <<<"$table") ;;
  # A rank that waits for others to join has no page yet: they are named by its error.
  meeting) table=$(grep -v '^not_joined' <<<"$table") ;;
esac
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
  "$COLJOB" why "$(job_here)" --after 500ms --json >"$out" 2>"$err" || code=$?
  [ "$code" -eq 1 ] && grep -qF "\"cause\": \"$cause\"" "$out" && grep -qE "\"sentence\": \".*$words" "$out" &&
    [ "$(blamed)" = "$culprits" ]
}

# start NAME: its ranks in the background, $job and $pids for their end.
start() {
  local rank
  if [ "$backend" != meeting ]; then
    "$COLRUN" -n 3 "$PLANTED_HANG" "$1" "$work/$1" >"$work/job" 2>&1 &
    job=$!
    return
  fi
  pids=()
  mkdir "$work/store.$1"
  for rank in 0 1 2; do
    PLANTED_STORE=file://$work/store.$1 COL_RANK=$rank "$PLANTED_HANG" "$1" "$work/$1" >>"$work/job" 2>&1 &
    pids+=($!)
  done
}
# The id of the job, or a rank of it, as there may be others.
job_here() { if [ "$backend" = meeting ]; then echo "${pids[0]}"; else basename "$TMPDIR"/col-* | cut -d- -f2-; fi; }
stop() {
  if [ "$backend" != meeting ]; then
    kill -TERM $job
    wait $job
    return
  fi
  kill -KILL "${pids[@]}"
  { wait "${pids[@]}"; } 2>/dev/null
}

for name in $names; do
  IFS=$'\t' read -r _ cause culprits words < <(grep -P "^$name\t" <<<"$table")
  mkdir "$work/$name"
  start "$name"
  wait_until 30 "the ranks of $name are there" files "$work/$name" 3
  wait_until 20 "a right answer for $name" is_right
  "$COLJOB" why "$(job_here)" --after 500ms >"$work/text"
  [ $? -eq 1 ] || fail "$name: not stuck any more: $(cat "$work/text")"
  [ "${SHOW:-}" ] && head -1 "$work/text"
  stop
done
nothing_left
