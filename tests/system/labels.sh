#!/bin/bash
# With --label every line begins with its rank, also when it is written in parts or has no end; with a pattern, with that;
# with --timestamp, with the time first.
. "$(dirname "$0")/lib.sh"

# between: what a rank has written so far has been read, as its word on the other stream, which came later, has been passed on.
between='between() { echo "between $RANK" >&2; await grep -q "between $RANK\$" "$0"; }'
expect_exit 0 "$COLRUN" --label -n 3 bash -c "$between"'; printf part; between; printf "ial\nsecond\n"; printf last' "$err"
expect_lines "$out" 9
for rank in 0 1 2; do
  [ "$(grep -n "^\[$rank\] " "$out" | cut -d: -f2- | paste -sd,)" = "[$rank] partial,[$rank] second,[$rank] last" ] ||
    fail "rank $rank's lines are not whole"
done
expect_exit 0 "$COLRUN" -l -n 2 sh -c 'echo error >&2'
sort "$err" | cmp - <(printf '[0] error\n[1] error\n') || fail "stderr is not labelled"
# The part alone: one prefix.
expect_exit 0 "$COLRUN" -l -n 1 bash -c "$between"'; printf part; between; printf "ial\n"' "$err"
printf '[0] partial\n' | cmp - "$out" || fail "not one prefix"

expect_exit 0 "$COLRUN" -n 11 --label-format '%h:%R/%w %l %n %g %s %% ' sh -c 'echo x; echo y >&2'
expect_lines "$out" 11
expect_in "$out" "^$(hostname):03/11 3 0 0 out % x\$"
expect_in "$err" "^$(hostname):10/11 10 0 0 err % y\$"
expect_exit 0 "$COLRUN" -n 1 --label-format '%j>' sh -c 'echo $COL_JOB_ID'
[ "$(cut -d'>' -f1 "$out")" = "$(cut -d'>' -f2 "$out")" ] || fail "%j is not the job's id"
for pattern in '%q' '%' 'x%'; do
  expect_exit 2 "$COLRUN" -n 1 --label-format "$pattern" true
  expect_lines "$err" 1
done

timed() {
  expect_exit 0 "$COLRUN" -n 2 -l --timestamp bash -c "$between"'; echo a; printf b; between; printf "c\nlast"' "$err"
  expect_lines "$out" 6
  [ "$(grep -cE '^[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{6} \[[01]\] (a|bc|last)$' "$out")" -eq 6 ] || fail "not a time before every line"
  sort -c -k1,1 <(grep -F '[0]' "$out")
}
timed || timed || fail "the times of a rank do not rise"  # the clock may be set back, but not all the time
nothing_left
