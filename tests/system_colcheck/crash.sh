#!/usr/bin/env bash
# A rank that dies in a case ends the run with exit code 5, and the case is named.
. "$(dirname "$0")/lib.sh"

COL_FAULT=kill:rank=1,op=3,step=0 expect 5 "$COLCHECK" --only exact --np 3 --backend shm --seed 1
cat "$out" "$err" >"$work/both"
grep -q 'rank 1' "$work/both" || fail "the dead rank is not named"
grep -q 'exact,backend=shm,np=3' "$work/both" || fail "the case is not named"
nothing_left
