#!/bin/bash
# Jobs side by side do not meet, fifty times, also when one of them fails.
. "$(dirname "$0")/lib.sh"

job='echo $COL_JOB_ID $COL_STORE $MASTER_PORT; : >"${COL_STORE#file://}/$RANK"; ls "${COL_STORE#file://}" | wc -l
  [ $RANK = 1 ] || [ $1 = 0 ] || exit $1; [ $1 = 0 ] || exec sleep 60'
for round in $(seq 50); do
  code=$((round % 5 == 0 ? 6 : 0))
  timeout 30 "$COLRUN" -n 2 sh -c "$job" x 0 >"$work/a.$round" 2>>"$err" & first=$!
  timeout 30 "$COLRUN" -n 2 sh -c "$job" x $code >"$work/b.$round" 2>>"$err.b" & second=$!
  expect_status 0 $first
  expect_status $code $second
  no_file || fail "round $round left files: $(find "$TMPDIR")"
done
[ ! -s "$err" ] || fail "something went wrong"
[ "$(cat "$work"/[ab].* | grep -o '^[0-9]*-[0-9]*-[0-9]*-[0-9a-f]* ' | sort -u | wc -l)" -eq 100 ] || fail "job ids are not unique"
! grep -hE '^[3-9]' "$work"/[ab].* | grep -vq - || fail "two jobs share a store"
nothing_left
