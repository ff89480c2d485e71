# shellcheck shell=bash
# What the tests of worlds that colrun has not started share. Sourced instead of lib.sh.
. "$(dirname "$0")/lib.sh"
: "${HELLO:?set HELLO to the hello example}"
# Nothing from a job that this test itself runs under.
for name in $(compgen -e); do
  case $name in COL_[A-Z]* | SLURM_* | OMPI_* | PMI_* | PMIX_* | MPI_LOCAL* | TORCHELASTIC_* | *WORLD_SIZE | *LOCAL_RANK) unset "$name" ;; esac
done
unset GROUP_RANK MASTER_ADDR MASTER_PORT JOB_COMPLETION_INDEX
export COL_TIMEOUT=25s

# need PROGRAM PACKAGE: skips the test when it is not installed.
need() {
  command -v "$1" >/dev/null && return
  echo "skipped: no $1 (apt-get install $2)"
  exit 77
}

# one_world RANKS COMMAND…: the command starts that many ranks of hello; they are one world, and nothing is left of it.
one_world() {
  local ranks=$1 rank
  shift
  expect_exit 0 "$@"
  for ((rank = 0; rank < ranks; ++rank)); do
    echo "rank $rank of $ranks: the sum is $((ranks * (ranks + 1) / 2))"
  done >"$work/expected"
  sort "$out" | diff "$work/expected" - >&2 || fail "not one world (above: < expected, > seen): $*"
  expect_not_in "$err" 'terminate|BAD TERMINATION|[Ww]arn'
  nothing_left
}

# each LAUNCHER RANKS PROGRAM…: starts ranks 0 to RANKS-1 as that launcher would on one host, but for those in $MISSING,
# and returns the highest exit code. Or those of $PLACES: "0:2 1:3" are rank 0 of 2, and rank 1 of 3.
cat >"$work/each" <<'SCRIPT'
#!/bin/bash
launcher=$1 all=$2 ranks=$2
shift 2
pids=()
for place in ${PLACES:-$(seq 0 $((ranks - 1)))}; do
  rank=${place%:*}
  ranks=${place#"$rank"}
  ranks=${ranks#:}
  ranks=${ranks:-$all}
  case " $MISSING " in *" $rank "*) continue ;; esac
  case $launcher in
    torchrun)
      set_place=(RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks GROUP_RANK=0 GROUP_WORLD_SIZE=1
        MASTER_ADDR=127.0.0.1 MASTER_PORT="${PORT:-29500}" TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0) ;;
    slurm)
      set_place=(SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURM_NODEID=0
        SLURM_STEP_NUM_TASKS=$ranks SLURM_STEP_NUM_NODES=1 SLURM_STEP_TASKS_PER_NODE=$ranks) ;;
    openmpi)
      set_place=(OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=$ranks OMPI_COMM_WORLD_LOCAL_RANK=$rank
        OMPI_COMM_WORLD_LOCAL_SIZE=$ranks PMIX_NAMESPACE=1305083905 PMIX_RANK=$rank) ;;
    kubernetes) set_place=(JOB_COMPLETION_INDEX=$rank COL_WORLD_SIZE=$ranks) ;;
    nameless) set_place=(RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$ranks) ;;
  esac
  env "${set_place[@]}" "$@" &
  pids+=($!)
done
code=0
# Not jobs -p: it knows no more of ranks that have died already.
for pid in "${pids[@]}"; do
  wait "$pid"
  ended=$?
  [ "$ended" -le "$code" ] || code=$ended
done
exit "$code"
SCRIPT
chmod +x "$work/each"
export each=$work/each MISSING=
