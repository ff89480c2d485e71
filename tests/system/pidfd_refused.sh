#!/bin/bash
# Where pidfd_open is refused, colrun says so once and works: SIGCHLD tells which ranks have ended.
. "$(dirname "$0")/lib.sh"
: "${REFUSING:?set REFUSING to the refusing program}"

"$REFUSING" true || exit 77
expect_exit 0 "$REFUSING" "$COLRUN" -n 20 sh -c 'echo $RANK'
sort -n "$out" | cmp - <(seq 0 19) || fail "not each rank once"
expect_lines "$err" 1
expect_in "$err" '^colrun: pidfd_open is refused here \(Operation not permitted\)'
nothing_left
# A rank that fails ends the others.
expect_exit 7 "$REFUSING" "$COLRUN" -n 3 sh -c 'if [ $RANK = 1 ]; then exit 7; fi; exec sleep 60'
expect_in "$err" '^colrun: rank 1 '
nothing_left
expect_exit 137 "$REFUSING" "$COLRUN" -n 3 sh -c 'if [ $RANK = 2 ]; then kill -9 $$; fi; exec sleep 60'
nothing_left
# ^C, a time limit with stacks asked for, and a restart.
"$REFUSING" "$COLRUN" -n 2 sh -c ': >"$0/ready.$RANK"; exec sleep 60' "$work" 2>"$err" &
pid=$!
wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1"
kill -INT $pid
expect_status 130 $pid
nothing_left
expect_exit 124 "$REFUSING" "$COLRUN" -n 2 --timeout 300ms --stacks-on-timeout sleep 60
nothing_left
expect_exit 0 "$REFUSING" "$COLRUN" -n 2 --max-restarts 1 sh -c '[ $COL_RESTART_COUNT = 1 ] || exit 3'
[ "$(grep -c pidfd_open "$err")" = 1 ] || fail "said more than once"
nothing_left
