#!/bin/bash
# A rank fails on one node: its exit code is the job's on all nodes, and all say which rank it was, and where.
. "$(dirname "$0")/ssh_lib.sh"
make_hosts 2
serve_ssh

# fails CODE SCRIPT HOW: rank 3, the second one of n2, runs the script; the others wait.
fails() {
  local code=$1 script=$2 how=$3 number
  for number in 1 2; do
    start_node n$number --nnodes 2 --node-rank $((number - 1)) --rdzv-endpoint n1:29400 -n 2 \
      bash -c "[ \$RANK = 3 ] || exec sleep 60; $script"
  done
  expect_node "$code" n1 10
  expect_node "$code" n2 10
  for number in 1 2; do expect_in "$work/n$number.err" "^colrun: rank 3 \(pid [0-9]+, host n2\) $how after"; done
  nothing_left
}
fails 7 'exit 7' 'exited with code 7'
fails 139 'ulimit -c 0; kill -SEGV $$' 'was killed by SIGSEGV'

# Those that fail only because of it are not blamed.
for number in 1 2; do
  start_node n$number --nnodes 2 --node-rank $((number - 1)) --rdzv-endpoint n1:29400 -n 1 \
    bash -c 'trap "exit 9" TERM; : >$0.$RANK; await test -e $0.0; [ $RANK = 0 ] || exit 7
      await false' "$work/ready"
done
expect_node 7 n1 10
expect_node 7 n2 10
nothing_left

# The same when one command has started both.
expect_exit 7 on n1 "$COLRUN" --ssh "$ssh_command" --host n1:2,n2:2 \
  bash -c '[ $RANK = 3 ] || exec sleep 60; exit 7' </dev/null
expect_in "$err" '^colrun: rank 3 \(pid [0-9]+, host n2\) exited with code 7 after'
nothing_left_soon

# A node's colrun is told to end: the job ends on all, by that signal there and by a code that says so elsewhere.
for number in 1 2; do
  start_node n$number --nnodes 2 --node-rank $((number - 1)) --rdzv-endpoint n1:29400 -n 1 \
    sh -c ': >$0.$RANK; exec sleep 60' "$work/told"
done
wait_until 20 "ranks" test -e "$work/told.0" -a -e "$work/told.1"
kill -TERM "${node_inner[n2]}"
expect_node 143 n2 10
wait_until 10 "an end on n1" gone "${node_started[n1]}"
wait "${node_started[n1]}" && fail "n1 ended as if all were well"
expect_in "$work/n1.err" '^colrun: .*(SIGTERM|n2)'
nothing_left_soon
