# shellcheck shell=bash
# A Slurm of three nodes, each on a host of nodes_lib.sh of its own. Sourced instead of nodes_lib.sh; then start_slurm.
# The controller is on n1, and so are the commands: on n1 srun …
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/slurm_conf.sh"
# Nothing from a job that this test itself runs under.
for name in $(compgen -e); do
  case $name in SLURM_* | SRUN_* | SBATCH_* | SALLOC_*) unset "$name" ;; esac
done

slurm=$work/slurm
export SLURM_CONF=$slurm/slurm.conf

start_slurm() {
  local program
  for program in munged slurmctld slurmd srun sbatch; do
    command -v $program >/dev/null || skip "no $program (apt-get install slurm-wlm munge)"
  done
  make_hosts 3
  mkdir -p "$slurm/state"
  {
    common_slurm_conf "$slurm"
    echo "SlurmctldHost=n1($(host_address n1))"
    echo "KillWait=5"
    # Heterogeneous jobs are started by backfill alone.
    echo "SchedulerType=sched/backfill"
    echo "SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1"
    echo "TmpFS=$TMPDIR"  # where mpi/pmix has its directories; each host has its own
    for program in n1 n2 n3; do echo "NodeName=$program NodeAddr=$(host_address $program) CPUs=8 RealMemory=1000"; done
  } >"$SLURM_CONF"
  (umask 077 && head -c 128 /dev/urandom >"$slurm/munge.key")
  # One munged for all: its socket is a file, and hosts share those. The daemons carry the test's tag, so they end with
  # it.
  munged --force --key-file="$slurm/munge.key" --socket="$slurm/munge.sock" --pid-file="$slurm/munged.pid" \
    --log-file="$slurm/munged.log" --seed-file="$slurm/munged.seed" 2>"$err" ||
    skip "munged does not start: $(cat "$err")"
  on n1 slurmctld || skip "slurmctld does not start: $(tail -n 1 "$slurm/slurmctld.log")"
  for program in n1 n2 n3; do
    on $program slurmd -N $program || skip "slurmd does not start: $(tail -n 1 "$slurm/slurmd.$program.log")"
  done
  wait_until 20 "three idle nodes" idle_nodes 3
}
idle_nodes() { [ "$(on n1 timeout 5 sinfo --noheader --states=idle --format=%D 2>/dev/null)" = "$1" ]; }

# no_program PATH: none of the test runs. For programs that have no variable of colrun.
no_program() {
  local pid
  for pid in $(tagged); do
    [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") != "$1"* ]] || return 1
  done
}
