#!/bin/bash
# The suites over the stand-ins, each time with other random times; but not all that only computes. FAKE_GPU_SEEDS: how
# many (3). FAKE_GPU_FIRST_SEED: from where on; otherwise the day says it. The suites of one seed run side by side: they
# mostly wait.
set -u
: "${CONFORMANCE_GPU:?}" "${GPU_FAULTS:?}" "${GPU_PROCESSES:?}"
count=${FAKE_GPU_SEEDS:-3}
first=${FAKE_GPU_FIRST_SEED:-$(($(date +%s) / 86400 * count))}
programs=("$CONFORMANCE_GPU" "$GPU_FAULTS" "$GPU_PROCESSES")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
for ((seed = first; seed < first + count; ++seed)); do
  pids=()
  for number in "${!programs[@]}"; do
    FAKE_GPU_SEED=$seed timeout 300 "${programs[number]}" '~gpu fold: *' >"$work/out.$number" 2>&1 &
    pids+=($!)
  done
  for number in "${!programs[@]}"; do
    if wait "${pids[number]}"; then continue; else code=$?; fi
    cat "$work/out.$number"
    echo "FAILED: exit code $code; to repeat it: FAKE_GPU_SEED=$seed ${programs[number]}"
    bad=1
  done
  echo "seed $seed: done after $SECONDS s"
done
exit $bad
