#!/bin/bash
# The suites over the stand-ins, each time with other random times; but not all that only computes. FAKE_GPU_SEEDS: how
# many (3). FAKE_GPU_FIRST_SEED: from where on; otherwise the day says it. FAKE_GPU_FORMS: the forms of NCCL's communicators,
# as COL_NCCL_BLOCKING has them ("off on"). The suites of one seed and form run side by side: they mostly wait.
set -u
: "${CONFORMANCE_GPU:?}" "${GPU_FAULTS:?}" "${GPU_PROCESSES:?}"
count=${FAKE_GPU_SEEDS:-3}
first=${FAKE_GPU_FIRST_SEED:-$(($(date +%s) / 86400 * count))}
programs=("$CONFORMANCE_GPU" "$GPU_FAULTS" "$GPU_PROCESSES")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
read -ra forms <<<"${FAKE_GPU_FORMS:-off on}"

run_seed() {  # run_seed SEED FORM
  local seed=$1 form=$2 pids=() number code
  for number in "${!programs[@]}"; do
    COL_NCCL_BLOCKING=$form FAKE_GPU_SEED=$seed timeout 300 "${programs[number]}" '~gpu fold: *' >"$work/out.$number" 2>&1 &
    pids+=($!)
  done
  for number in "${!programs[@]}"; do
    if wait "${pids[number]}"; then continue; else code=$?; fi
    cat "$work/out.$number"
    echo "FAILED: exit code $code; to repeat it: COL_NCCL_BLOCKING=$form FAKE_GPU_SEED=$seed ${programs[number]}"
    bad=1
  done
  echo "seed $seed, blocking $form: done after $SECONDS s"
}

for ((seed = first; seed < first + count; ++seed)); do
  for form in "${forms[@]}"; do run_seed "$seed" "$form"; done
done
exit $bad
