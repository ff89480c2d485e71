#!/usr/bin/env bash
# Under a launcher colbench works in the ranks that are there.
. "$(dirname "$0")/lib.sh"

expect 0 "$COLRUN" -n 3 "$COLBENCH" allreduce,barrier --size 1K --max-time 100ms --bound off
says "3 ranks on"
says "1 launch"
says "no interval of the median: 1 of the 6 launches that 95 % needs, as the ranks are not colbench's own"
[ "$(grep -c '^allreduce' "$out")" = 1 ] || fail "not one table"
expect 0 mpirun.mpich -n 2 "$COLBENCH" broadcast --size 1K --max-time 100ms --bound off
says "2 ranks on"
expect 2 "$COLRUN" -n 2 "$COLBENCH" allreduce -n 3 --size 1K
complains "leave -n out"
expect 2 "$COLRUN" -n 2 "$COLBENCH" allredcue
# But for colrun's report, which repeats what the rank has said.
[ "$(grep -v '^colrun:' "$err" | grep -c "did you mean")" = 1 ] || fail "not said once"
nothing_left
