#!/bin/bash
# Ranks that ignore SIGTERM, and stopped ones, are gone after the grace, and have all of it.
. "$(dirname "$0")/lib.sh"

"$COLRUN" -n 3 --term-grace 1s bash -c 'trap "" TERM; : >$0/ready.$RANK; [ $RANK = 2 ] && kill -STOP $$; await false' "$work" 2>"$err" &
pid=$!
wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1" -a -e "$work/ready.2"
uptime() { read -r up _ </proc/uptime && echo "$((10#${up/./} * 10))"; }  # in ms; nobody sets it back
sent=$(uptime)
kill -TERM $pid
expect_status 143 $pid
took=$(($(uptime) - sent))
expect_in "$err" 'ranks 0-2 did not end when told to and had to be killed'
nothing_left
[ $took -ge 1000 ] || fail "ranks had $took ms of their second"

# When a rank fails it is --grace that counts.
mkdir "$work/trapped"
expect_exit 3 "$COLRUN" -n 3 --grace 500ms --term-grace 100s bash -c '
  if [ $RANK = 0 ]; then await files "$0" 2; exit 3; fi
  trap "" TERM; : >"$0/$RANK"; await false' "$work/trapped"
expect_in "$err" 'ranks 1-2 did not end when told to and had to be killed'
nothing_left
