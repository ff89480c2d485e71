#!/bin/bash
# --pty: a rank writes to a terminal, with the size of the user's.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 2 sh -c 'test -t 1 || test -t 2 || echo pipe'
[ "$(sort -u "$out")" = pipe ] || fail "a terminal without --pty"
expect_exit 0 "$COLRUN" -n 2 -l --pty sh -c 'test -t 1 && test -t 2 && echo terminal; echo both >&2'
tr -d '\r' <"$out" | sort | cmp - <(printf '[0] both\n[0] terminal\n[1] both\n[1] terminal\n') || fail "no terminal"
[ ! -s "$err" ] || fail "something on stderr"
grep -q $'\r' "$out" && fail "carriage returns that no rank wrote"
# What a program writes to a terminal comes as it is; nothing is lost at its end, and the exit code is its own.
expect_exit 0 "$COLRUN" -n 1 --pty seq 50000
cmp "$out" <(seq 50000) || fail "text was lost on its way through the terminal"
expect_exit 7 "$COLRUN" -n 2 --pty sh -c '[ $RANK = 1 ] && exit 7; exec sleep 60'
# Input for rank 0 goes through its terminal. It stays open until the answer has come, or all is over.
is_over() { [ ! -d "$work" ] || [ -e "$work/has_answered" ] || grep -qs 'got words' "$out"; }
expect_exit 0 timeout 20 "$COLRUN" -n 2 --pty sh -c '[ $RANK = 1 ] || { read -r line; echo "got $line"; }' < <(echo words; wait_until 20 "the answer" is_over)
expect_in "$out" '^got words'
: >"$work/has_answered"
# Its end, too.
expect_exit 0 timeout 20 "$COLRUN" -n 1 --pty wc -l < <(printf 'a\nb\n')
expect_in "$out" '^ *2'
# The window's size, and its changes.
type script >/dev/null 2>&1 || { echo "script(1) is missing: no terminal to test the window's size with"; exit 77; }
write_program "$work/rank" <<'R'
exec 3<&1
trap ': >"$work/told.$RANK"' WINCH
stty size <&3 >"$work/size.$RANK.new"; mv "$work/size.$RANK.new" "$work/size.$RANK"
# bash may lose a signal that comes while it runs a trap, so the size itself is looked at: rows change first, then columns.
has_changed() { stty size <&3 | grep -qx '44 55'; }
await has_changed
await test -e "$work/told.$RANK"
R
export work
write_program "$work/session" <<'S'
stty rows 33 cols 101
"$COLRUN" -n 2 --pty "$work/rank" &
await test -e "$work/size.0" -a -e "$work/size.1"
stty rows 44 cols 55
kill -WINCH $!
wait $!
S
timeout -k 1 20 script -qec "bash $work/session" /dev/null </dev/null >"$out" 2>"$err" || fail "the session in a terminal ended with $?"
for rank in 0 1; do
  [ "$(cat "$work/size.$rank")" = '33 101' ] || fail "rank $rank has a window of $(cat "$work/size.$rank")"
done
nothing_left
