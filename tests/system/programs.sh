#!/bin/bash
# Several programs in one job: ranks in the order of the programs, each with its own variables.
. "$(dirname "$0")/lib.sh"

show='echo $0 $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $COL_RANK [$MINE] [$OURS]'
expect_exit 0 "$COLRUN" -n 1 -x OURS=all sh -c "$show" a : -n 2 -x MINE=second sh -c "$show" b : -n 1 -x MINE=third -x OURS=other sh -c "$show" c
sort "$out" | cmp - <(printf '%s\n' 'a 0 4 0 4 0 [] [all]' 'b 1 4 1 4 1 [second] [all]' 'b 2 4 2 4 2 [second] [all]' 'c 3 4 3 4 3 [third] [other]') ||
  fail "not ranks 0, 1-2 and 3"
# A colon that is an argument.
expect_exit 0 "$COLRUN" -n 1 echo a '\:' b: ::
expect_in "$out" '^a : b: ::$'
# The one that fails decides; what is missing is found before anything runs.
expect_exit 6 "$COLRUN" -n 1 sleep 60 : -n 1 sh -c 'exit 6'
expect_in "$err" '^colrun: rank 1 '
expect_exit 127 "$COLRUN" -n 1 touch "$work/started" : -n 2 no-such-program
expect_exit 2 "$COLRUN" -n 1 touch "$work/started" :
expect_exit 2 "$COLRUN" -n 1 touch "$work/started" : --timeout 5 true
expect_in "$err" '^colrun: --timeout is for the whole job'
[ ! -e "$work/started" ] || fail "started though the second program cannot be"
nothing_left
