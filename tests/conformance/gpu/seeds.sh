#!/bin/bash
# The suites over the stand-ins, each time with other random times; but not all that only computes. FAKE_GPU_SEEDS: how many (3). FAKE_GPU_FIRST_SEED: from
# where on; otherwise the day says it.
set -u
: "${CONFORMANCE_GPU:?}" "${GPU_FAULTS:?}" "${GPU_PROCESSES:?}"
count=${FAKE_GPU_SEEDS:-3}
first=${FAKE_GPU_FIRST_SEED:-$(($(date +%s) / 86400 * count))}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
for ((seed = first; seed < first + count; ++seed)); do
  for program in "$CONFORMANCE_GPU" "$GPU_FAULTS" "$GPU_PROCESSES"; do
    if FAKE_GPU_SEED=$seed timeout 300 "$program" '~gpu fold: *' >"$work/out" 2>&1; then continue; else code=$?; fi
    cat "$work/out"
    echo "FAILED: exit code $code; to repeat it: FAKE_GPU_SEED=$seed $program"
    bad=1
  done
  echo "seed $seed: done after $SECONDS s"
done
exit $bad
