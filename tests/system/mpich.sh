#!/bin/bash
# A program of MPICH that colrun starts is one world: colrun serves PMI-1, as MPICH's own launcher does.
. "$(dirname "$0")/adopt_lib.sh"
need mpirun.mpich mpich
world=("$(dirname "$0")/mpich_world.py")
world_of() { # RANKS RANKS_ON_EACH_NODE
  local rank
  for ((rank = 0; rank < $1; ++rank)); do
    echo "rank $rank of $1: the sum is $(($1 * ($1 - 1) / 2)), $2 ranks on this node"
  done
}
expect_world() { sort "$out" | diff <(world_of "$@") - >&2 || fail "not one world (above: < expected, > seen)"; }

expect_exit 0 "$COLRUN" -n 4 python3 "${world[@]}"
expect_world 4 4
nothing_left
# A shell between, and two programs.
expect_exit 0 "$COLRUN" -n 1 sh -c 'exec python3 "$0"' "${world[@]}" : -n 2 python3 "${world[@]}"
expect_world 3 3

# MPI_Abort: the job ends with the code that the program wants, and its rank is named.
expect_exit 7 "$COLRUN" -n 3 python3 "${world[@]}" 1 7
expect_in "$err" '^colrun: rank 1 \(.*\) exited with code 7'
nothing_left

# A rank that dies in the midst, and a start again: the new ranks are a world of their own.
cat >"$work/dies_once.sh" <<'SCRIPT'
[ "$COL_RESTART_COUNT$RANK" != 01 ] || exec python3 "$0" 1 3
exec python3 "$0"
SCRIPT
expect_exit 0 "$COLRUN" -n 2 --max-restarts 1 sh -c "$(<"$work/dies_once.sh")" "${world[@]}"
tail -n 2 "$out" | sort | diff <(world_of 2 2) - >&2 || fail "no world after the restart (above: < expected, > seen)"
nothing_left

# Programs that know nothing of it are told nothing else: libcol's ranks are colrun's.
expect_exit 0 "$COLRUN" -n 2 "$HELLO"
expect_lines "$out" 2
# Without the launcher's socket, each is alone, as without a launcher.
expect_exit 0 "$COLRUN" -n 2 env -u PMI_FD -u PMI_RANK -u PMI_SIZE python3 "${world[@]}"
[ "$(grep -c 'rank 0 of 1: the sum is 0, 1 ranks' "$out")" -eq 2 ] || fail "not alone without PMI_FD"
