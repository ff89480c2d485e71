#!/bin/bash
# A program that cannot be executed: 126, one line, at once, nothing started.
. "$(dirname "$0")/lib.sh"

echo 'echo started' >"$work/plain"
cp "$work/plain" "$work/no_first_line"
printf '#!/no/such/interpreter\n' >"$work/no_interpreter"
chmod +x "$work/no_first_line" "$work/no_interpreter"
for program in "$work/plain" "$work/no_first_line" "$work/no_interpreter" "$work"; do
  expect_exit 126 "$COLRUN" -n 4 "$program"
  expect_lines "$err" 1
  expect_in "$err" "^colrun: cannot run '$program': "
  [ ! -s "$out" ] || fail "a rank was started"
done
expect_in "$err" ': it is a directory; name a program in it$'
printf '#!/bin/sh\r\necho started\r\n' >"$work/crlf"
chmod +x "$work/crlf"
expect_exit 126 "$COLRUN" -n 2 "$work/crlf"
expect_in "$err" "^colrun: cannot run '$work/crlf': its lines end as on Windows; write them anew: sed -i 's/.r\\$//' $work/crlf\$"
# A script of Python is started by Python.
echo 'print(1)' >"$work/train.py"
expect_exit 126 "$COLRUN" -n 2 "$work/train.py"
expect_in "$err" "permission denied; a script of Python needs its interpreter: colrun python3 $work/train.py$"
cd "$work" || exit 1
expect_exit 127 "$COLRUN" -n 2 train.py
expect_in "$err" "colrun python3 train.py$"
chmod +x train.py
expect_exit 126 "$COLRUN" -n 2 ./train.py
expect_in "$err" "Exec format error; a script of Python needs its interpreter: colrun python3 ./train.py$"
nothing_left
