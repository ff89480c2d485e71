#!/bin/bash
# The suites over the stand-ins, each time with other random times; but not all that only computes. FAKE_GPU_SEEDS: how
# many (3). FAKE_GPU_FIRST_SEED: from where on; otherwise the day says it. FAKE_GPU_FORMS: the forms of NCCL's communicators,
# as COL_NCCL_BLOCKING has them ("off on"). FAKE_GPU_JOBS: how many seeds run side by side (1), each with its suites side by
# side: they mostly wait. FAKE_GPU_LOG: a file with a line for each run, with its commit and its processor time; those that
# have passed are not run again. seeds.log has the 200 from 5000 on.
set -u
: "${CONFORMANCE_GPU:?}" "${GPU_FAULTS:?}" "${GPU_PROCESSES:?}"
count=${FAKE_GPU_SEEDS:-3}
first=${FAKE_GPU_FIRST_SEED:-$(($(date +%s) / 86400 * count))}
jobs=${FAKE_GPU_JOBS:-1}
log=${FAKE_GPU_LOG:-/dev/null}
read -ra forms <<<"${FAKE_GPU_FORMS:-off on}"
programs=("$CONFORMANCE_GPU" "$GPU_FAULTS" "$GPU_PROCESSES")
# A tenth of what NCCL's threads take to end, as most of the cases have it anyway. In the same order as before: longer
# than all that is random, and far below the library's limits of seconds.
export FAKE_NCCL_LOOK=50
# A limit against hangs, for a machine that others use, too.
limit=$((300 * jobs))
here=$(cd "$(dirname "$0")" && pwd)
commit=$(git -C "$here" rev-parse --short HEAD 2>/dev/null) && git -C "$here" diff --quiet HEAD -- :/ ':!seeds.log' || commit+=+
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run_seed() {  # run_seed SEED FORM
  local seed=$1 form=$2 pids=() number code bad=0 cases='~gpu fold: *'
  [ "$form" = on ] || cases="~[blocking]$cases"
  for number in "${!programs[@]}"; do
    COL_NCCL_BLOCKING=$form FAKE_GPU_SEED=$seed timeout $limit "${programs[number]}" "$cases" \
      >"$work/$seed.$form.$number" 2>&1 &
    pids+=($!)
  done
  for number in "${!programs[@]}"; do
    if wait "${pids[number]}"; then continue; else code=$?; fi
    cat "$work/$seed.$form.$number"
    echo "FAILED: exit code $code; to repeat it: COL_NCCL_BLOCKING=$form FAKE_GPU_SEED=$seed ${programs[number]}"
    bad=1
  done
  times >"$work/$seed.$form.times"
  local result=passed
  [ $bad = 0 ] || result=failed
  printf '%s %s seed %d, blocking %s: %s; %s\n' "$(date +%FT%T)" "$commit" "$seed" "$form" $result \
    "$(tail -n 1 "$work/$seed.$form.times")" | tee -a "$log"
  rm -f "$work/$seed.$form".*
  [ $bad = 0 ]
}

bad=0 running=0
for ((seed = first; seed < first + count; ++seed)); do
  for form in "${forms[@]}"; do
    grep -qs " seed $seed, blocking $form: passed" "$log" && continue
    if [ $running = "$jobs" ]; then
      wait -n || bad=1
      running=$((running - 1))
    fi
    run_seed "$seed" "$form" &
    running=$((running + 1))
  done
done
while [ $running != 0 ]; do
  wait -n || bad=1
  running=$((running - 1))
done
exit $bad
