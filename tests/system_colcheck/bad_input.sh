#!/usr/bin/env bash
# Everything that is wrong with a command line is said in one line, before any rank starts.
. "$(dirname "$0")/lib.sh"

refused() {  # refused TEXT ARGUMENT…
  local text=$1
  shift
  expect 2 "$COLCHECK" "$@"
  complains "$text"
  [ "$(wc -l <"$err")" = 1 ] || fail "more than a line for '$*'"
  [ ! -s "$out" ] || fail "something was started for '$*'"
}

refused "exact" --only exakt
refused "np" --np 0
refused "np" --np 1-9-3
refused "np" --np 1000
refused "cannot write" --json /nowhere/report.json
refused "cannot write" --junit /
refused "required" --require nccl --backend shm
refused "--nonsense" --nonsense
refused "--python is gone; " --python --require shm
refused "--interpreter is gone; " --interpreter python3
refused "'lib=torch' in the token has an unknown key" --repro exact,backend=shm,np=2,lib=torch
refused "leave out" --np 3 --repro exact,np=3
COL_RANK=9 COL_WORLD_SIZE=4 refused "COL_RANK=9" --quick
# Only the ranks know what algorithms a backend brings.
expect 2 "$COLCHECK" --np 2 --algo rign
complains "did you mean 'ring'"
[ "$(wc -l <"$err")" = 1 ] || fail "more than a line"
# Without a stdout it checks all the same; no file or pipe of its own takes that place.
"$COLCHECK" --only plans --np 2 >&- 2>"$err" || fail "exit code $? with stdout closed: $(cat "$err")"
export CUDA_VISIBLE_DEVICES=  # no GPU
expect 77 "$COLCHECK" --device cuda
complains "skipped"
expect 77 "$COLCHECK" --backend nccl
nothing_left
