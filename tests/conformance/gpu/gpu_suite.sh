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
exec timeout 280 "$tests" --durations yes
