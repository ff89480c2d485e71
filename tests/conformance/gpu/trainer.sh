#!/bin/bash
# digits_trainer with gradients in the memory of GPUs: the losses are those of the host, over NCCL and through the host.
set -u
: "${COLRUN:?}" "${DIGITS_TRAINER:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1

fail() {
  { echo "FAILED: $*"; tail -n 20 "$work"/*; } >&2
  exit 1
}
# train NAME RANKS ARGUMENT…
train() {
  local name=$1 ranks=$2
  shift 2
  timeout 60 "$COLRUN" -n "$ranks" "$DIGITS_TRAINER" --no-save --epochs 2 "$@" >"$work/$name" 2>&1 ||
    fail "$name ended with $?"
  awk '$1 == "epoch" {print $2, $4}' "$work/$name" >"$work/$name.losses"
  [ "$(wc -l <"$work/$name.losses")" = 2 ] || fail "$name: not two epochs"
}
says() { grep -q -- "$2" "$work/$1" || fail "$1 does not say '$2'"; }

train host 3
train nccl 3 --device cuda
says nccl '^digits_trainer: 3 ranks over nccl'
says nccl '^gradients are reduced on GPUs; rank 0 has fake GPU 0 0000:01:00.0$'
FAKE_GPU_DEVICES=1 train shared 3 --device cuda
says shared '^digits_trainer: 3 ranks over shm'
FAKE_GPU_DEVICES=1 train alone 1 --device cuda
says alone '^digits_trainer: 1 rank over nccl'
for name in nccl shared alone; do
  paste -d ' ' "$work/host.losses" "$work/$name.losses" | awk '
    {difference = ($2 - $4) / $2; if (difference < 0) difference = -difference; if (!(difference < 1e-4)) bad = 1}
    END {exit bad}' || fail "the losses of '$name' are not those of the host"
done

FAKE_GPU_DEVICES=0 timeout 60 "$DIGITS_TRAINER" --no-save --device cuda >"$work/none" 2>&1
[ $? = 1 ] || fail "without a GPU: not exit code 1"
says none '^digits_trainer: --device cuda is not available: the CUDA driver sees no device'
[ "$(wc -l <"$work/none")" = 1 ] || fail "without a GPU: more than one line"
