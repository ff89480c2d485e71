#!/bin/bash
# Ranks on several hosts that something else than colrun has started: they meet at rank 0, inside of the library.
. "$(dirname "$0")/nodes_lib.sh"
: "${HELLO:?set HELLO to the hello example}"
for name in $(compgen -e); do
  case $name in
    COL_[A-Z]* | SLURM_* | OMPI_* | PMI_* | PMIX_* | TORCHELASTIC_* | *WORLD_SIZE | *LOCAL_RANK) unset "$name" ;;
  esac
done
unset GROUP_RANK MASTER_ADDR MASTER_PORT JOB_COMPLETION_INDEX
export COL_TIMEOUT=25s
make_hosts 2

# one_world VARIABLES…: a function that prints what `env` is to set for rank $1 of 4, the second of $2 on its host.
one_world() {
  local rank started_ranks=()
  for rank in 3 1 2 0; do
    # shellcheck disable=SC2046 # a list of words
    start_on n$((rank / 2 + 1)) env $("$1" $rank $((rank % 2))) timeout -k 1 40 "$HELLO" \
      >"$work/rank.$rank" 2>"$work/n$rank.err"
    started_ranks+=("$started")
  done
  for rank in "${started_ranks[@]}"; do expect_status 0 "$rank"; done
  cat "$work"/rank.[0-3] | sort | diff <(printf 'rank %s of 4: the sum is 10\n' 0 1 2 3) - >&2 ||
    fail "not one world by $1 (above: < expected, > seen)"
  nothing_left
}

# As torchrun sets them. Its own port is taken, by torchrun.
torchrun() {
  echo RANK="$1" WORLD_SIZE=4 LOCAL_RANK="$2" LOCAL_WORLD_SIZE=2 GROUP_RANK=$(($1 / 2)) GROUP_WORLD_SIZE=2 \
    MASTER_ADDR=n1 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=7 TORCHELASTIC_RESTART_COUNT=0 COL_RDZV_ENDPOINT=n1:29401
}
one_world torchrun

# An Indexed Job whose pods are ranks.
kubernetes() { echo JOB_COMPLETION_INDEX="$1" COL_WORLD_SIZE=4 COL_RDZV_ENDPOINT="$(host_address n1):29401"; }
one_world kubernetes

# As Open MPI's mpirun sets them.
openmpi() {
  echo OMPI_COMM_WORLD_RANK="$1" OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK="$2" OMPI_COMM_WORLD_LOCAL_SIZE=2 \
    PMIX_NAMESPACE=1305083905 PMIX_RANK="$1" COL_RDZV_ENDPOINT=n1:29401
}
one_world openmpi

# Without the endpoint, the ranks say what is missing.
start_on n1 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 \
  OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=1305083905 PMIX_RANK=0 timeout -k 1 40 "$HELLO" >"$out" 2>"$err"
wait $started && fail "a world over hosts that cannot meet"
expect_in "$err" 'COL_RDZV_ENDPOINT'
nothing_left
