#!/bin/bash
# At a terminal: ^C and ^Z act on the job, the keyboard is rank 0's, and the terminal is left as it was, however a job ends.
. "$(dirname "$0")/lib.sh"

type script >/dev/null 2>&1 || { echo "script(1) is missing: no terminal to test with"; exit 77; }
export work out err
mkfifo "$work/keys"
timeout -k 1 100 script -qfec 'exec bash --norc --noprofile -i' "$work/typescript" <"$work/keys" >/dev/null 2>"$err" &
exec 6>"$work/keys"
type_line() { printf '%s\r' "$1" >&6; }
said=0
# ask COMMAND: what it prints, at the terminal's shell.
ask() {
  said=$((said + 1))
  type_line "$1 >\"\$work/new\" 2>&1; mv \"\$work/new\" \"\$work/said.$said\""
  wait_until 10 "the shell's answer to: $1" test -e "$work/said.$said"
  cat "$work/said.$said"
}
state() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null; }
write_program "$work/rank" <<'R'
trap 'echo interrupted >>"$work/log"; exit 0' INT
say_pid "$work/pid.$RANK"
await test -e "$work/go"
[ "$RANK" = 0 ] && { read -r line; echo "read $line" >>"$work/log"; }
exit "${1:-0}"
R
start() { # OPTIONS AND ARGUMENTS
  rm -f "$work"/pid.* "$work"/go "$work/log" "$work/code"
  type_line "\"\$COLRUN\" -n 2 ${1/RANK/\"\$work/rank\"}; echo \$? >\"\$work/code.new\"; mv \"\$work/code.new\" \"\$work/code\""
  wait_until 10 "ranks ready" test -e "$work/pid.0" -a -e "$work/pid.1"
}
expect_code() {
  wait_until 10 "the end of the job" test -e "$work/code"
  [ "$(cat "$work/code")" = "$1" ] || fail "code $(cat "$work/code") instead of $1: $(cat "$work/typescript")"
}
settings=$(ask 'stty -a')
as_it_was() { [ "$(ask 'stty -a')" = "$settings" ] || fail "the terminal is not as it was after $1"; }

for options in '' --pty '--stdin all'; do
  # ^C: every rank's handler runs.
  start "$options RANK"
  printf '\003' >&6
  wait_until 10 "interrupted ranks" grep -qs interrupted "$work/log"
  : >"$work/go"
  wait_until 10 "the end of the job" eval 'gone "$(cat "$work/pid.0")"'
  wait_until 10 "processes left" no_process  # the keyboard may be that of each
  as_it_was "^C with '$options'"

  # What is typed goes to rank 0.
  start "$options RANK"
  : >"$work/go"
  type_line 'some words'
  expect_code 0
  expect_in "$work/log" '^read some words'
  as_it_was "an input with '$options'"

  # A failure, and the worst that can happen to colrun.
  start "$options RANK 5"
  : >"$work/go"
  type_line x
  expect_code 5
  as_it_was "a failure with '$options'"
  start "$options RANK"
  watcher=$(awk '{ print $4 }' "/proc/$(cat "$work/pid.0")/stat")
  kill -KILL "$(awk '{ print $4 }' "/proc/$watcher/stat")"
  expect_code 137
  wait_until 10 "processes left" no_process
  as_it_was "SIGKILL with '$options'"
done

# Without a shell that would set the terminal right again.
write_program "$work/session" <<'S'
stty -a >"$work/before"
rm -f "$work"/pid.*
"$COLRUN" -n 2 --pty "$work/rank" &
colrun=$!
await test -e "$work/pid.0" -a -e "$work/pid.1"
kill -"$1" $colrun
wait $colrun
stty -a >"$work/after"
S
for signal in KILL TERM; do
  timeout -k 1 20 script -qec "bash '$work/session' $signal" /dev/null </dev/null >/dev/null 2>"$err" || fail "the session ended with $?"
  cmp "$work/before" "$work/after" || fail "the terminal is not as it was after SIG$signal"
  wait_until 10 "processes left" no_process
done

# ^Z, and on again.
start RANK
printf '\032' >&6
wait_until 10 "ranks stopped" eval '[ "$(state "$(cat "$work/pid.0")")$(state "$(cat "$work/pid.1")")" = TT ]'
as_it_was '^Z'
: >"$work/go"
type_line fg
wait_until 10 "ranks going on" eval '[[ "$(state "$(cat "$work/pid.0")")$(state "$(cat "$work/pid.1")")" != *T* ]]'
type_line 'after the stop'
wait_until 10 "the input" grep -qs '^read after the stop' "$work/log"
wait_until 10 "processes left" no_process
as_it_was 'fg'
type_line exit
exec 6>&-
wait
nothing_left
