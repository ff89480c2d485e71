#!/bin/bash
# On one GPU, what needs one is tested, and what needs more is skipped by name, not passed over.
set -u
here=$(cd "$(dirname "$0")" && pwd)
output=$(bash "$here/gpu_suite.sh" 2>&1)
code=$?
printf '%s\n' "$output" | tail -n 60
fail() { echo "FAILED: $1"; exit 1; }
[ "$code" = 0 ] || fail "exit code $code"
grep -q '^skipped from 2 GPUs up: gpu: ' <<<"$output" || fail 'no case is skipped by name'
grep -qE '^[0-9]+ cases ended early' <<<"$output" || fail 'the skipped cases are not counted'
grep -qE '^All tests passed' <<<"$output" || fail 'nothing has run'
