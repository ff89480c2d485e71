#!/bin/bash
# Ranks that srun starts are one world: in a Slurm of three nodes that this test runs for itself on this host.
. "$(dirname "$0")/adopt_lib.sh"
for program in munged slurmctld slurmd srun salloc; do need $program "slurm-wlm munge"; done
[ "$(id -u)" -eq 0 ] || { echo "skipped: slurmd needs root"; exit 77; }

in_use() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
slurm=$work/slurm
mkdir -p "$slurm/state"
export SLURM_CONF=$slurm/slurm.conf
. "$(dirname "$0")/slurm_conf.sh"
(umask 077 && head -c 128 /dev/urandom >"$slurm/munge.key")
# Its daemons carry the test's tag, so they end with the test.
munged --force --key-file="$slurm/munge.key" --socket="$slurm/munge.sock" --pid-file="$slurm/munged.pid" \
  --log-file="$slurm/munged.log" --seed-file="$slurm/munged.seed" || fail "munged does not start"
idle() { [ "$(timeout 5 sinfo --noheader --states=idle --format=%D 2>/dev/null)" = 3 ]; }
# Four ports in a row, which somebody else may take before Slurm does.
start_slurm() {
  local attempt port
  for ((attempt = 0; attempt < 50; ++attempt)); do
    port=$((20000 + RANDOM % 10000))
    in_use $port || in_use $((port + 1)) || in_use $((port + 2)) || in_use $((port + 3)) || break
  done
  {
    common_slurm_conf "$slurm"
    echo "SlurmctldHost=$(uname -n)(127.0.0.1)"
    echo "SlurmctldPort=$port"
    echo "SchedulerType=sched/builtin"
    echo "NodeName=n[1-3] NodeHostname=$(uname -n) NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 3))] CPUs=4 RealMemory=1000"
  } >"$SLURM_CONF"
  slurmctld || return 1
  for node in n1 n2 n3; do slurmd -N $node || return 1; done
  (wait_until 20 "three idle nodes" idle)
}
slurm_daemons() { cat "$slurm"/slurm{ctld,d.n?}.pid 2>/dev/null; }
start_slurm || {
  # shellcheck disable=SC2046
  kill -9 $(slurm_daemons) 2>/dev/null
  rm -f "$slurm"/*.pid
  start_slurm || fail "Slurm does not start"
}

one_world 4 srun --nodes=1 --ntasks=4 "$HELLO"
one_world 3 srun --nodes=1 --ntasks=3 --mpi=pmi2 "$HELLO"

# On several nodes, rank 0 is looked for on the first. That these are one host in truth is not Slurm's word, and the names
# of the nodes are known to Slurm alone.
COL_RDZV_ENDPOINT=127.0.0.1 one_world 3 srun --nodes=2 --ntasks=3 "$HELLO"
COL_TIMEOUT=2s timeout -k 1 30 srun --nodes=2 --ntasks=2 "$HELLO" >"$out" 2>"$err" && fail "nodes that nobody can find"
expect_in "$err" 'timeout: .*rank 0 .*n1:2[0-8][0-9]{3} \(SLURM_STEP_NODELIST\).*COL_RDZV_ENDPOINT'
COL_STORE=file://$work/store expect_exit 0 srun --nodes=2 --ntasks=3 "$HELLO"
expect_in "$out" 'rank 2 of 3: the sum is 6'

# mpirun of either family, in an allocation, runs as a step of one task: that is not the ranks' world.
if command -v mpirun.mpich >/dev/null; then
  one_world 4 salloc --quiet --nodes=1 --ntasks=4 mpirun.mpich -n 4 "$HELLO"
fi
if command -v mpirun.openmpi >/dev/null; then
  one_world 4 salloc --quiet --nodes=1 --ntasks=4 mpirun.openmpi --allow-run-as-root --oversubscribe -n 4 "$HELLO"
fi
