#!/bin/bash
# A program of torch.distributed, whose ranks meet by env://, runs under colrun as it is.
. "$(dirname "$0")/lib.sh"
program=$(cd "$(dirname "$0")" && pwd)/torch_env.py

# A distribution's package belongs to the distribution's python3, which need not be the first one.
python=
for candidate in python3 /usr/bin/python3; do
  if timeout -k 1 60 "$candidate" -c 'import sys, torch.distributed as d; sys.exit(not d.is_available())' \
    2>>"$err"; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || { echo "skipped: no python3 with torch.distributed (apt-get install python3-torch)"; exit 77; }

right_on_all() {
  local log=$1 collective rank
  expect_lines "$log" 24
  for collective in reduce all_reduce scatter gather all_gather broadcast; do
    for rank in 0 1 2 3; do expect_in "$log" "^rank $rank of 4: $collective is right\$"; done
  done
}

# torch_job CODE ARGUMENT…: four ranks. Each loads PyTorch first, which takes seconds on a busy machine.
torch_job() {
  local expected=$1
  shift
  timeout -k 1 60 "$COLRUN" -n 4 "$python" "$program" "$@" >"$out" 2>"$err" &
  expect_status "$expected" $!
}

# What another launcher has left in the environment is not believed, and two jobs at a time do not want the same port.
export MASTER_ADDR=192.0.2.1 MASTER_PORT=29500 RANK=7 WORLD_SIZE=8
timeout -k 1 60 "$COLRUN" -n 4 "$python" "$program" >"$work/second" 2>"$work/second.err" &
second=$!
torch_job 0
right_on_all "$out"
wait $second || fail "the job beside it: status $?: $(cat "$work/second.err")"
right_on_all "$work/second"
nothing_left

# An exception in one rank ends the others, which wait for it in a collective; its traceback is seen. PyTorch closes its
# connections long before its process ends, so the others fail by themselves meanwhile, and any of them may be first.
torch_job 1 --raise 2
expect_in "$err" 'RuntimeError: this rank was asked to fail'
expect_in "$err" '^colrun: rank [0-3] \(pid [0-9]+, host .+\) exited with code 1 after'
nothing_left
