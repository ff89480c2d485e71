#!/bin/bash
# The suites over the stand-ins, each time with other random times; but not all that only computes. FAKE_GPU_SEEDS: how
# many (3). FAKE_GPU_FIRST_SEED: from where on; otherwise the day says it. FAKE_GPU_FORMS: the forms of NCCL's communicators,
# as COL_NCCL_BLOCKING has them ("off on"). FAKE_GPU_JOBS: how many seeds run side by side (1), each with its suites side by
# side: they mostly wait. FAKE_GPU_LOG: a file with a line for each that has passed; these are not run again.
set -u
: "${CONFORMANCE_GPU:?}" "${GPU_FAULTS:?}" "${GPU_PROCESSES:?}"
count=${FAKE_GPU_SEEDS:-3}
first=${FAKE_GPU_FIRST_SEED:-$(($(date +%s) / 86400 * count))}
jobs=${FAKE_GPU_JOBS:-1}
log=${FAKE_GPU_LOG:-/dev/null}
read -ra forms <<<"${FAKE_GPU_FORMS:-off on}"
programs=("$CONFORMANCE_GPU" "$GPU_FAULTS" "$GPU_PROCESSES")
# A limit against hangs, for a machine that others use, too.
limit=$((300 * jobs))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run_seed() {  # run_seed SEED FORM
  local seed=$1 form=$2 pids=() number code bad=0
  for number in "${!programs[@]}"; do
    COL_NCCL_BLOCKING=$form FAKE_GPU_SEED=$seed timeout $limit "${programs[number]}" '~gpu fold: *' \
      >"$work/$seed.$form.$number" 2>&1 &
    pids+=($!)
  done
  for number in "${!programs[@]}"; do
    if wait "${pids[number]}"; then continue; else code=$?; fi
    cat "$work/$seed.$form.$number"
    echo "FAILED: exit code $code; to repeat it: COL_NCCL_BLOCKING=$form FAKE_GPU_SEED=$seed ${programs[number]}"
    bad=1
  done
  rm -f "$work/$seed.$form".*
  echo "seed $seed, blocking $form: done after $SECONDS s"
  [ $bad = 0 ] && echo "seed $seed, blocking $form: passed" >>"$log"
}

bad=0 running=0
for ((seed = first; seed < first + count; ++seed)); do
  for form in "${forms[@]}"; do
    grep -qsx "seed $seed, blocking $form: passed" "$log" && continue
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
