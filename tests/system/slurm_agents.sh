#!/bin/bash
# In Slurm, one colrun on each node needs no option to know the others.
. "$(dirname "$0")/slurm_lib.sh"
: "${DIGITS_TRAINER:?set DIGITS_TRAINER to the digits trainer}"
batch=$(cd "$(dirname "$0")/../.." && pwd)/configs/slurm/job.sbatch
start_slurm
# srun and sbatch find it as a user's would.
PATH=$(dirname "$COLRUN"):$PATH
place='echo $COL_RANK/$COL_WORLD_SIZE $COL_LOCAL_RANK/$COL_LOCAL_WORLD_SIZE $COL_NODE_RANK/$COL_NNODES $(hostname)'

# one_world HOST…: two ranks on each of them, in this order.
one_world() {
  local host rank=0 number=0
  for host in "$@"; do
    for local_rank in 0 1; do
      echo "$rank/$((2 * $#)) $local_rank/2 $number/$# $host"
      rank=$((rank + 1))
    done
    number=$((number + 1))
  done | diff - <(sort -n "$out") >&2 || fail "not one world (above: < expected, > seen)"
  nothing_left_soon
}

expect_exit 0 on n1 srun --nodes=3 --ntasks-per-node=1 colrun -n 2 sh -c "$place"
one_world n1 n2 n3
# srun itself is on a host that is not part of the job.
expect_exit 0 on n1 srun --nodelist=n2,n3 --ntasks-per-node=1 colrun -n 2 sh -c "$place"
one_world n2 n3
expect_exit 0 on n1 srun --nodes=1 --ntasks-per-node=1 colrun -n 2 sh -c "$place"
one_world n1

# A heterogeneous step, whose parts have other programs; its first node has the last name.
expect_exit 0 on n1 srun --quiet --nodelist=n3 --ntasks=1 colrun -n 1 sh -c "$place" : \
  --nodelist=n1,n2 --ntasks=2 colrun -n 2 sh -c "$place"
sort -n "$out" | diff <(printf '%s\n' '0/5 0/1 0/3 n3' '1/5 0/2 1/3 n1' '2/5 1/2 1/3 n1' '3/5 0/2 2/3 n2' '4/5 1/2 2/3 n2') - >&2 ||
  fail "not one world of a heterogeneous job (above: < expected, > seen)"
nothing_left_soon

expect_exit 0 on n1 srun --nodes=2 --ntasks-per-node=1 colrun -n 2 "$DIGITS_TRAINER" --no-save --epochs 3
expect_in "$out" 'digits_trainer: 4 ranks over hosts'
expect_in "$out" '^test accuracy 0\.9[0-9]+ after 3 epochs on 4 ranks'
nothing_left_soon

# Two steps at a time, on the same nodes.
on n1 timeout 30 srun --nodes=2 --ntasks-per-node=1 colrun -n 2 sh -c "$place" >"$work/first" 2>"$err" &
first=$!
expect_exit 0 on n1 srun --nodes=2 --ntasks-per-node=1 colrun -n 2 sh -c "$place"
expect_status 0 $first
expect_lines "$work/first" 4
one_world n1 n2

# The batch file of the documentation, and its exit code.
# submit ARGUMENT…: sets $job.
submit() { job=$(on n1 sbatch --parsable --output="$out" --error="$err" "$@") || fail "sbatch: $*"; }
state_of() { on n1 scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z]*\) .*/\1/p'; }
ended() { [[ $(state_of "$1") =~ COMPLETED|FAILED|CANCELLED ]]; }
RANKS_PER_NODE=2 submit --nodes=3 --cpus-per-task=2 "$batch" sh -c "$place"
wait_until 30 "the batch job" ended "$job"
[ "$(state_of "$job")" = COMPLETED ] || fail "the batch job is $(state_of "$job")"
one_world n1 n2 n3
RANKS_PER_NODE=2 submit --nodes=2 --cpus-per-task=2 "$batch" sh -c '[ $COL_RANK = 3 ] || exec sleep 60; exit 7'
wait_until 30 "the batch job" ended "$job"
on n1 scontrol show job "$job" | grep -q 'ExitCode=7:0' || fail "$(on n1 scontrol show job "$job" | grep ExitCode)"
expect_in "$err" '^colrun: rank 3 \(pid [0-9]+, host n2\) exited with code 7 after'
nothing_left_soon
# A batch script is no step: without srun, colrun is a job on the node where the script runs.
printf '#!/bin/sh\nexec "$@"\n' >"$work/alone"
submit --nodes=2 "$work/alone" colrun -n 2 sh -c "$place"
wait_until 30 "the batch job" ended "$job"
one_world n1

# Two on a node are a mistake.
on n1 timeout 30 srun --nodes=2 --ntasks=4 colrun -n 1 touch "$work/started" >"$out" 2>"$err" &&
  fail "two colruns on each node"
expect_in "$err" '^colrun: .*--ntasks-per-node=1'
[ ! -e "$work/started" ] || fail "two colruns on each node started ranks"
nothing_left_soon

# waiting_job: ranks on all three nodes that wait for their end.
waiting_job() {
  rm -f "$work"/ready.*
  start_on n1 srun --nodes=3 --ntasks-per-node=1 colrun -n 1 \
    sh -c 'setsid sleep 300 & : >$0.$COL_RANK; sleep 60' "$work/ready" >"$out" 2>"$err"
  wait_until 20 "ranks" test -e "$work/ready.0" -a -e "$work/ready.1" -a -e "$work/ready.2"
}

# A rank fails: srun returns its code. (One that is told to kill the step for that returns another.)
waiting_job
for pid in $(processes_on n2); do
  ! grep -qz '^COL_RANK=' "/proc/$pid/environ" || kill -KILL "$pid"
done
wait_until 20 "the end of srun" gone $started
expect_status 137 $started
expect_in "$err" '^colrun: rank 1 \(pid [0-9]+, host n2\) was killed by SIGKILL'
nothing_left_soon

# The colrun of a node is killed: the others end and say which node is lost.
waiting_job
kill -KILL "$(for pid in $(processes_on n3); do grep -lx colrun "/proc/$pid/comm"; done | head -n 1 | cut -d/ -f3)"
wait_until 20 "the end of srun" gone $started
wait $started && fail "srun returned 0 although a node was lost"
expect_in "$err" '^colrun: .*n3'
nothing_left_soon

# The job is cancelled.
waiting_job
on n1 scancel --state=RUNNING
wait_until 20 "the end of srun" gone $started
nothing_left_soon 20
