#!/bin/bash
# A program of MPICH over several hosts under colrun: one world, whose ranks know which of them share a host.
. "$(dirname "$0")/nodes_lib.sh"
command -v mpirun.mpich >/dev/null || skip "no mpirun.mpich (apt-get install mpich)"
world=$(dirname "$0")/mpich_world.py
export UCX_TLS=tcp,self,sysv,posix FI_PROVIDER=tcp # what hosts that are namespaces have
# Its MPI_Finalize over UCX's TCP waits, now and then, for a rank that is in PMI's last barrier already and moves nothing.
export MPICH_WORLD_LEAVES=1
make_hosts 2

# start_world RANKS_ON_N1 RANKS_ON_N2 ARGUMENT…
start_world() {
  start_node n1 --nnodes 2 --rdzv-endpoint n1:29411 --node-rank 0 -n "$1" python3 "$world" "${@:3}"
  start_node n2 --nnodes 2 --rdzv-endpoint n1:29411 --node-rank 1 -n "$2" python3 "$world" "${@:3}"
}
start_world 2 1
expect_node 0 n1 60
expect_node 0 n2 60
cat "$work/n1.out" "$work/n2.out" | sort | diff - <(cat <<'TXT'
rank 0 of 3: the sum is 3, 2 ranks on this node
rank 1 of 3: the sum is 3, 2 ranks on this node
rank 2 of 3: the sum is 3, 1 ranks on this node
TXT
) >&2 || fail "not one world over two hosts (above: < seen, > expected)"
nothing_left_soon

# MPI_Abort on one host ends the job on both.
start_world 1 1 1 9
expect_node 9 n1 60
expect_node 9 n2 60
nothing_left_soon
