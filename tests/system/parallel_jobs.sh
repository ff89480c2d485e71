#!/bin/bash
# Jobs side by side do not meet.
. "$(dirname "$0")/lib.sh"

for round in $(seq 20); do
  for job in a b; do
    timeout 30 "$COLRUN" -n 2 sh -c 'echo $COL_JOB_ID $COL_STORE $MASTER_PORT; : >"${COL_STORE#file://}/$RANK"; ls "${COL_STORE#file://}" | wc -l' \
      >"$work/$job.$round" 2>>"$err" &
  done
  wait -n || fail "a job failed"
  wait -n || fail "a job failed"
done
[ ! -s "$err" ] || fail "something went wrong"
[ "$(cat "$work"/[ab].* | grep -o '^[0-9]*-[0-9]*-[0-9]*-[0-9a-f]* ' | sort -u | wc -l)" -eq 40 ] || fail "job ids are not unique"
! grep -hE '^[3-9]' "$work"/[ab].* | grep -vq - || fail "two jobs share a store"
nothing_left
