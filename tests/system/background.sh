#!/bin/bash
# In the background of an interactive shell a job is not stopped for want of the terminal, and leaves the keyboard alone.
. "$(dirname "$0")/lib.sh"

type script >/dev/null 2>&1 || { echo "script(1) is missing: no terminal to test with"; exit 77; }
export work out err
state() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null; }
write_program "$work/rank" <<'R'
: >"$work/ready.$RANK"
await test -e "$work/go"
echo "rank $RANK done"
R
mkfifo "$work/keys"
timeout -k 1 60 script -qfec 'exec bash --norc --noprofile -i' "$work/typescript" <"$work/keys" >/dev/null 2>"$err" &
exec 6>"$work/keys"
type_line() { printf '%s\r' "$1" >&6; }
try() { # OPTIONS
  rm -f "$work"/ready.* "$work"/pid "$work"/pid.new "$work/go" "$work/code" "$work/line"
  : >"$out"
  type_line "\"\$COLRUN\" -n 2 $1 \"\$work/rank\" >\"\$out\" & echo \$! >\"\$work/pid.new\"; mv \"\$work/pid.new\" \"\$work/pid\""
  wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1" -a -s "$work/pid"
  # What is typed now is the shell's, not rank 0's.
  type_line 'echo typed >"$work/line.new"; mv "$work/line.new" "$work/line"'
  wait_until 10 "the shell's answer" test -e "$work/line"
  [[ "$(state "$(cat "$work/pid")")" != [Tt] ]] || fail "colrun is in state $(state "$(cat "$work/pid")") in the background, with '$1'"
  : >"$work/go"
  type_line 'wait $(cat "$work/pid"); echo $? >"$work/code"'
  wait_until 10 "the end of the job" test -s "$work/code"
  [ "$(cat "$work/code")" = 0 ] || fail "the job in the background ended with $(cat "$work/code")"
  expect_lines "$out" 2
}
try ''
try '--stdin all'
try '--pty'
try '--stdin 1'
type_line exit
exec 6>&-
wait
nothing_left
