#!/usr/bin/env bash
# Under a launcher, colcheck joins the one world that it finds. $1: the launcher.
. "$(dirname "$0")/lib.sh"

need() { command -v "$1" >/dev/null || { echo "skipped: $1 is not installed"; exit 77; }; }
case $1 in
  colrun) world=(5 "$COLRUN" -n 5) ;;
  openmpi)
    need mpirun.openmpi
    world=(4 mpirun.openmpi --allow-run-as-root --oversubscribe -n 4)
    ;;
  mpich)
    need mpirun.mpich
    world=(4 mpirun.mpich -n 4)
    ;;
esac
expect 0 "${world[@]:1}" "$COLCHECK" --quick
says "one world of ${world[0]} ranks, started by $1"
[ "$(grep -c 'one world of' "$out")" = 1 ] || fail "more than one world"
says ' 0 failed'
if [ "$1" = colrun ]; then
  # The errors that cases provoke are not why a job fails.
  expect 1 "$COLRUN" -n 2 sh -c '"$0" --quick --only sticky_error; exit 1' "$COLCHECK"
  complains 'exited with code 1'
  ! grep ' said ' "$err" || fail "colrun reports an error that was meant"
fi
nothing_left
