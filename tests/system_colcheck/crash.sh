#!/usr/bin/env bash
# A rank that dies in a case ends the run with exit code 5, and the case is named.
. "$(dirname "$0")/lib.sh"

# Behind the calls by which colcheck finds out what the backend can do.
dies() {
  COL_FAULT=kill:rank=1,op=60,step=0 expect 5 "$COLCHECK" --only exact --np 3 --backend shm --seed 1
  cat "$out" "$err" >"$work/both"
  grep -q 'rank 1' "$work/both" || fail "the dead rank is not named"
  grep -q 'exact,backend=shm,np=3' "$work/both" || fail "the case is not named"
}
again dies

# One that crashes says in which case, whatever it is in.
"$COLCHECK" --soak 60s --only exact,guard_pages --np 2 --backend shm >"$out" 2>"$err" </dev/null &
starter=$!
ranks() { pgrep -f -- "^$COLCHECK --spawned .*--soak 60s"; }
deadline=$((SECONDS + 20))
until [ "$(ranks | wc -l)" -ge 2 ]; do [ "$SECONDS" -lt "$deadline" ] || fail "no ranks"; done
until grep -q 'one world of' "$out"; do [ "$SECONDS" -lt "$deadline" ] || fail "nothing runs"; done
kill -SEGV "$(ranks | tail -n 1)"
wait "$starter"
[ $? = 5 ] || fail "not exit code 5"
grep -q "crashed; run: colcheck --repro '" "$err" || fail "no token of the crash"
nothing_left
