#!/bin/bash
# When the reader of the output is gone the job ends, with 141; when its disk is full, with 125 and a line that says which.
. "$(dirname "$0")/lib.sh"

"$COLRUN" -n 2 sh -c 'while :; do echo line; done' 2>"$err" | head -1 >"$out"
[ "${PIPESTATUS[0]}" -eq 141 ] || fail "not 141"
expect_in "$out" '^line$'
rm "$out"
# Also when the reader goes while ranks are silent, at the next word.
"$COLRUN" -n 2 bash -c 'echo first; await test -e "$0/gone"; echo second; await false' "$work" 2>"$err" | head -1 >"$out" &
pipeline=$!
wait_until 10 "the first line" test -s "$out"
: >"$work/gone"
wait $pipeline
expect_exit 125 sh -c '"$0" -n 2 echo text >/dev/full' "$COLRUN"
expect_in "$err" '^colrun: cannot write the output to stdout: No space left'
expect_exit 125 sh -c '"$0" -n 2 --json - true >/dev/full' "$COLRUN"
expect_in "$err" '^colrun: cannot write the output to stdout: No space left'
# The words of a rank that failed are lost, too: its code stands.
expect_exit 3 sh -c '"$0" -n 1 --json - sh -c "exit 3" >/dev/full' "$COLRUN"
expect_in "$err" '^colrun: cannot write the output to stdout: No space left'
# Files have all of it: the job goes on, and in the end it is said what the console lacks.
expect_exit 125 bash -c '"$0" -n 1 --output "file=$1/file.%r" --tee bash -c "
  for word in one two three; do echo \$word; await grep -qs \$word \"\$0/file.0\"; done" "$1" >/dev/full' "$COLRUN" "$work"
expect_in "$err" '^colrun: cannot write the output to stdout: No space left'
printf '%s\n' one two three | cmp - "$work/file.0" || fail "the job was ended though its files are whole"
wait_until 10 "processes left" no_process
nothing_left
