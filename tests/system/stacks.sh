#!/bin/bash
# --stacks-on-failure and --stacks-on-timeout: where the ranks were, taken before they are ended.
. "$(dirname "$0")/lib.sh"
: "${LATE_RANK:?set LATE_RANK to the late_rank program}"

# It waits in a call of col, so its own functions are on the stack when a debugger is there to find them.
expect_exit 124 "$COLRUN" -n 2 --timeout 1s --stacks-on-timeout "$LATE_RANK" 0 "$work"
expect_in "$err" '^colrun: stacks? of rank 0 \((gdb|eu-stack|/proc)\):$'
expect_in "$err" '^colrun: stacks? of rank 1 \((gdb|eu-stack|/proc)\):$'
if grep -qE 'of rank 0 \((gdb|eu-stack)' "$err"; then
  expect_in "$err" '^colrun:   .*nanosleep'
  expect_in "$err" '^colrun:   .*allreduce'
fi
nothing_left
expect_exit 5 "$COLRUN" -n 3 --stacks-on-failure bash -c 'if [ $RANK = 1 ]; then await test -e "$0/r0" -a -e "$0/r2"; exit 5; fi; : >"$0/r$RANK"; exec sleep 60' "$work"
expect_in "$err" '^colrun: stacks? of ranks 0, 2 \((gdb|eu-stack|/proc)\):$'
expect_in "$err" '^colrun: ended 2 other ranks \(ranks 0, 2\)$'
# Without a debugger, from /proc: enough to see the call that it is in.
mkdir "$work/bin"
for program in sh sleep touch; do ln -s "$(type -P $program)" "$work/bin/$program"; done
PATH_WITHOUT=$work/bin
expect_exit 124 env PATH="$PATH_WITHOUT" "$COLRUN" -n 2 --timeout 500ms --stacks-on-timeout sleep 60
expect_in "$err" '^colrun: stacks? of ranks 0-1 \(/proc\):$'
expect_in "$err" '^colrun:   .*[a-z_]*sleep'
# Neither is taken when it was not asked for, nor for the other reason; no debugger stays behind.
expect_exit 124 "$COLRUN" -n 2 --timeout 300ms --stacks-on-failure sleep 60
expect_not_in "$err" 'stack'
expect_exit 5 "$COLRUN" -n 2 --stacks-on-timeout sh -c '[ $RANK = 0 ] && exit 5; exec sleep 60'
expect_not_in "$err" 'stack'
# A stopped rank cannot hold it up.
expect_exit 5 "$COLRUN" -n 2 --stacks-on-failure bash -c 'if [ $RANK = 0 ]; then : >"$0/me"; kill -STOP $$; fi; await test -e "$0/me"; exit 5' "$work"
nothing_left
