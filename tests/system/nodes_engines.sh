#!/bin/bash
# Engines that reach their hosts over ssh: mpirun of both families, whose ranks are libcol's, and colrun with the lists of
# hosts that PBS and LSF make, by the job files in configs/.
. "$(dirname "$0")/ssh_lib.sh"
: "${HELLO:?set HELLO to the hello example}"
for name in $(compgen -e); do
  case $name in
    COL_[A-Z]* | SLURM_* | OMPI_* | PMI_* | PMIX_* | MPI_LOCAL* | *WORLD_SIZE | *LOCAL_RANK | PBS_* | LSB_*) unset "$name" ;;
  esac
done
configs=$(cd "$(dirname "$0")/../../configs" && pwd)
export COL_TIMEOUT=25s
hydra=$(command -v mpiexec.hydra) || skip "no mpiexec.hydra (apt-get install mpich)"
open_mpi=$(command -v mpirun.openmpi) || skip "no mpirun.openmpi (apt-get install openmpi-bin)"
make_hosts 3
serve_ssh
printf '#!/bin/sh\nexec %s "$@"\n' "$ssh_command" >"$work/bin/ssh_to"
chmod +x "$work/bin/ssh_to"

# one_world COMMAND…: four ranks of hello.
one_world() {
  expect_exit 0 on n1 "$@"
  grep '^rank' "$out" | sort | diff <(printf 'rank %s of 4: the sum is 10\n' 0 1 2 3) - >&2 ||
    fail "not one world (above: < expected, > seen): $*"
  nothing_left_soon
}

# MPICH's ranks learn from its launcher where rank 0 is, whether mpiexec is on one of the hosts or not.
mpich=("$hydra" -launcher ssh -launcher-exec "$work/bin/ssh_to")
one_world "${mpich[@]}" -hosts n1:2,n2:2 -n 4 "$HELLO"
one_world "${mpich[@]}" -hosts n3:3,n2:1 -n 4 "$HELLO"
one_world "${mpich[@]}" -hosts n2:1,n3:3 -n 4 -genv COL_RDZV_ENDPOINT "$(host_address n2):29401" "$HELLO"
# A rank never comes: the others say so, in time.
COL_TIMEOUT=2s timeout -k 1 40 on n1 "${mpich[@]}" -n 2 -hosts n2:1,n3:1 \
  sh -c '[ "$PMI_RANK" != 0 ] || exec sleep 60; exec "$0"' "$HELLO" >"$out" 2>"$err" && fail "a world without rank 0"
expect_in "$err" 'timeout: not all ranks have come'
nothing_left_soon

# Open MPI's need to be told.
open_mpi=("$open_mpi" --allow-run-as-root --mca plm_rsh_agent "$work/bin/ssh_to" -x COL_TIMEOUT -n 4)
one_world "${open_mpi[@]}" -x COL_RDZV_ENDPOINT=n2:29401 --host n2:2,n3:2 "$HELLO"
timeout -k 1 40 on n1 "${open_mpi[@]}" --host n1:2,n2:2 "$HELLO" >"$out" 2>"$err" && fail "ranks that cannot meet"
expect_in "$err" 'unavailable: .*COL_RDZV_ENDPOINT'
nothing_left_soon

# job FILE VARIABLE…: the job file as its engine runs it on the first host, in the folder of the program.
mkdir "$work/job"
printf '#!/bin/sh\necho "$COL_RANK/$COL_WORLD_SIZE $COL_LOCAL_RANK/$COL_LOCAL_WORLD_SIZE $(hostname) $*"\nexec "%s" >/dev/null\n' \
  "$HELLO" >"$work/job/my_trainer"
chmod +x "$work/job/my_trainer"
ln -s "$COLRUN" "$work/bin/colrun"
job() {
  local file=$1
  shift
  (cd "$work/job" && COLRUN_SSH=$ssh_command expect_exit 0 on n1 env "$@" bash "$file") || exit
  sort "$out" | diff <(printf '%s --epochs 3\n' "${expected[@]}") - >&2 || fail "$file (above: < expected, > seen)"
  nothing_left_soon
}
expected=('0/3 0/2 n1' '1/3 1/2 n1' '2/3 0/1 n3')
printf '%s\n' n1 n1 n3 >"$work/job/hosts"
job "$configs/pbs/job.pbs" PBS_NODEFILE="$work/job/hosts" PBS_O_WORKDIR="$work/job" PBS_JOBID=17.server
job "$configs/lsf/job.lsf" LSB_DJOB_HOSTFILE="$work/job/hosts" LSB_JOBID=17
job "$configs/lsf/job.lsf" LSB_MCPU_HOSTS="n1 2 n3 1" LSB_JOBID=17
# As many on each host as -n says.
expected=('0/4 0/2 n1' '1/4 1/2 n1' '2/4 0/2 n3' '3/4 1/2 n3')
job "$configs/pbs/job.pbs" PBS_NODEFILE="$work/job/hosts" PBS_O_WORKDIR="$work/job" COLRUN_NP=2
