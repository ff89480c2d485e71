#!/bin/bash
# The tests of the nccl backend on the GPUs of this machine. Where it cannot be used, says why and exits with 77.
# COL_TEST_SHARED_GPU=1: ranks are processes that share the first GPU, with NCCL 2.30.3 or newer; each case runs by itself.
# GPU_SUITE_SECONDS: how long it may take (280), and GPU_SUITE_CASE_SECONDS: how long a case that runs by itself (40).
set -u
here=$(cd "$(dirname "$0")" && pwd)
tests=${CONFORMANCE_GPU:-$here/conformance_gpu}
limit=${GPU_SUITE_SECONDS:-280}
reason=$("${PRINT_REASON:-$here/print_reason}")
if [ "$reason" != available ]; then
  echo "skipped: $reason"
  exit 77
fi
output=$(mktemp)
case_output=$(mktemp)
trap 'rm -f "$output" "$case_output"' EXIT

# The exit code of the listing is the number of cases.
names() { "$tests" --list-test-names-only | grep .; }

one_by_one() {
  export NCCL_MULTI_RANK_GPU_ENABLE=1
  local name code good=0 bad=0
  mapfile -t all < <(names)
  for name in "${all[@]}"; do
    if [ "$SECONDS" -ge "$limit" ]; then
      echo "given up after $SECONDS s: $((${#all[@]} - good - bad)) cases have not run"
      return 1
    fi
    # A comma in a name would end it.
    timeout --kill-after=2 "${GPU_SUITE_CASE_SECONDS:-40}" "$tests" --durations yes "${name//,/\\,}" >"$case_output" 2>&1
    code=$?
    if [ "$code" = 0 ]; then
      good=$((good + 1))
      grep -E '^(skipped from|[0-9.]+ s: )' "$case_output"
    else
      bad=$((bad + 1))
      cat "$case_output"
      echo "BAD, exit code $code: $name"
    fi
  done
  echo "$good of ${#all[@]} cases passed, each by itself"
  [ "$bad" = 0 ] && [ "$good" -gt 0 ]
}

if [ "${COL_TEST_SHARED_GPU:-}" = 1 ]; then
  one_by_one 2>&1 | tee "$output"
else
  timeout --kill-after=5 "$limit" "$tests" --durations yes | tee "$output"
fi
code=${PIPESTATUS[0]}
skipped=$(grep -c '^skipped from' "$output")
[ "$skipped" = 0 ] || echo "$skipped cases ended early: they need more GPUs than this machine has (see the lines 'skipped from')"
exit "$code"
