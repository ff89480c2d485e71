#!/bin/bash
# Where there are GPUs, the tools do what they can do without, and say what they do not.
set -u
: "${COLCHECK:?}" "${COLBENCH:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# says CODE PATTERN COMMAND…
says() {
  local expected=$1 pattern=$2 code
  shift 2
  timeout 100 "$@" >"$work/out" 2>&1
  code=$?
  [ $code = "$expected" ] && grep -qE -- "$pattern" "$work/out" && return
  { echo "FAILED: exit code $code, not $expected, or no '$pattern': $*"; cat "$work/out"; } >&2
  exit 1
}

says 0 'nccl: colcheck does not look at memory of GPUs yet' "$COLCHECK" --quick --only exact --np 2
says 0 ' 0 failed' "$COLCHECK" --quick --only exact --np 2
says 77 'colcheck does not look at memory of GPUs yet' "$COLCHECK" --device cuda
says 2 "'nccl' is required" "$COLCHECK" --quick --require nccl
says 77 'nccl moves memory of GPUs, which colbench does not measure yet' "$COLBENCH" allreduce --backend nccl
says 77 'colbench does not measure memory of GPUs yet' "$COLBENCH" allreduce --device cuda
