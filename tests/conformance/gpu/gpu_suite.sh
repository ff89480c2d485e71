#!/bin/bash
# The tests of the nccl backend on the GPUs of this machine. Where it cannot be used, says why and exits with 77.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tests=${CONFORMANCE_GPU:-$here/conformance_gpu}
reason=$("${PRINT_REASON:-$here/print_reason}")
if [ "$reason" != available ]; then
  echo "skipped: $reason"
  exit 77
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT
timeout 280 "$tests" --durations yes | tee "$output"
code=${PIPESTATUS[0]}
skipped=$(grep -c '^skipped from' "$output")
[ "$skipped" = 0 ] || echo "$skipped cases ended early: they need more GPUs than this machine has (see the lines 'skipped from')"
exit "$code"
