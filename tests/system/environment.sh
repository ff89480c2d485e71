#!/bin/bash
# All variables of colrun and torchrun are set, and those of an outer launcher are replaced or gone.
. "$(dirname "$0")/lib.sh"

export RANK=1 WORLD_SIZE=3 LOCAL_RANK=9 COL_RANK=77 COL_STORE=file:///nowhere MASTER_PORT=1 TORCHELASTIC_RUN_ID=outer
export PMI_RANK=5 PMIX_RANK=5 OMPI_COMM_WORLD_RANK=5 SLURM_PROCID=5 PALS_RANKID=5 KEPT_VARIABLE='a b'
expect_exit 0 "$COLRUN" -n 2 sh -c 'env >"$0/env.$COL_RANK"; ls -ld "${COL_STORE#file://}" >"$0/store"; test -s "$COL_CONTROL"' "$work"
for rank in 0 1; do
  env=$work/env.$rank
  for expected in COL_RANK=$rank COL_WORLD_SIZE=2 COL_LOCAL_RANK=$rank COL_LOCAL_WORLD_SIZE=2 COL_NODE_RANK=0 COL_NNODES=1 \
    COL_RESTART_COUNT=0 RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 GROUP_RANK=0 GROUP_WORLD_SIZE=1 \
    ROLE_NAME=default ROLE_RANK=$rank ROLE_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 TORCHELASTIC_RESTART_COUNT=0 \
    TORCHELASTIC_MAX_RESTARTS=0 TORCHELASTIC_USE_AGENT_STORE=False 'KEPT_VARIABLE=a b' OMP_NUM_THREADS=1; do
    expect_in "$env" "^$expected\$"
  done
  for name in COL_JOB_ID COL_STORE COL_CONTROL COL_ERROR_FILE MASTER_PORT TORCHELASTIC_RUN_ID TORCHELASTIC_ERROR_FILE; do
    [ "$(grep -c "^$name=" "$env")" -eq 1 ] || fail "$name is not there exactly once"
  done
  expect_in "$env" "^COL_STORE=file://$TMPDIR/col-.*/store\$"
  expect_in "$env" "^COL_CONTROL=$TMPDIR/col-.*/control\$"
  expect_in "$env" "^COL_ERROR_FILE=$TMPDIR/col-.*/error.$rank.json\$"
  expect_in "$env" "^PMI_RANK=$rank\$"
  expect_not_in "$env" '^(PMI_RANK=5|PMIX_|OMPI_COMM_|SLURM_PROCID|PALS_RANKID|MASTER_PORT=1$|TORCHELASTIC_RUN_ID=outer)'
done
expect_in "$work/store" '^drwx------'
nothing_left
