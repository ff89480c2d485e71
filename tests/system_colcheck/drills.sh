#!/usr/bin/env bash
# All drills of colcheck --faults over the backend $1, with random seeds. A run that fails shows its seed.
. "$(dirname "$0")/lib.sh"

faults=$("$COLCHECK" --list | awk '/\(with --faults\)$/ { print $1 }' | paste -sd,)
# UCX itself ends a process that has no descriptor left when its worker is first woken.
skipped=()
[ "$1" != ucx ] || skipped=(--skip descriptor_limit)
expect 0 "$COLCHECK" --faults --only "$faults" --backend "$1" --device cpu "${skipped[@]}" ${COLTEST_SEED:+--seed "$COLTEST_SEED"}
