#!/bin/bash
# A program that cannot be executed: 126, one line, at once, nothing started.
. "$(dirname "$0")/lib.sh"

echo 'echo started' >"$work/plain"
cp "$work/plain" "$work/no_first_line"
printf '#!/no/such/interpreter\n' >"$work/no_interpreter"
chmod +x "$work/no_first_line" "$work/no_interpreter"
for program in "$work/plain" "$work/no_first_line" "$work/no_interpreter" "$work"; do
  expect_soon 100 expect_exit 126 "$COLRUN" -n 4 "$program"
  expect_lines "$err" 1
  expect_in "$err" "^colrun: cannot run '$program': "
  [ ! -s "$out" ] || fail "a rank was started"
done
nothing_left
