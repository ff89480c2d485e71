#!/bin/bash
# Under colrun: a host on which all is frozen is known to be lost, and a job that is stopped by ^Z is not.
. "$(dirname "$0")/wire_lib.sh"
make_hosts 2
enough=$work/enough
runs=0

# begin: two ranks on each node, which work until $enough is there.
begin() {
  local number job
  rm -f "$enough"
  runs=$((runs + 1))
  job=$work/job.$runs
  for number in 1 2; do
    start_node n$number --nnodes 2 --node-rank $((number - 1)) --rdzv-endpoint n1:29400 -n 2 \
      "$WIRE_JOB" 8 "$job" "$enough"
  done
  wait_until 30 "the first calls" ready "$job" 4
}
# known WHAT LIMIT: that was known after so many milliseconds, since $began.
known() {
  local took=$(($(now_ms) - began))
  echo "$1 after $took ms"
  [ $took -le "$(ceiling "$2")" ] || fail "it took $took ms"
}

# The one where nobody meets, and the one where the launchers meet.
begin
signal_host STOP n2
began=$(now_ms)
wait_until 20 "ranks that notice" grep -q peer_lost "$work/n1.out"
known "$(grep -m 1 peer_lost "$work/n1.out")" 5000
expect_node 125 n1 15
expect_in "$work/n1.out" '^peer_lost 2 .*host n2 \(node 1, ranks 2 to 3\) is lost: nothing was heard of it for 4 s'
expect_in "$work/n1.err" '^colrun: lost the connection to host n2 \(ranks 2 to 3\): dead or frozen'
signal_host CONT n2
expect_node 125 n2 15
nothing_left_soon

[ -z "${HAVE_UCX:-}" ] || export COL_BACKEND=ucx  # whatever wire the ranks wait in
begin
signal_host STOP n1
began=$(now_ms)
wait_until 20 "ranks that notice" grep -q peer_lost "$work/n2.out"
known "$(grep -m 1 peer_lost "$work/n2.out")" 5000
expect_node 125 n2
expect_in "$work/n2.err" '^colrun: lost the connection to the job at n1:29400 \(nothing was heard of it for 4 s\)'
signal_host CONT n1
wait_until 15 "colrun on n1 to end" gone "${node_started[n1]}"
nothing_left_soon

unset COL_BACKEND

# Stopped on one node as ^Z does it: the ranks and the colrun in front of them, but not its watcher, which beats. For longer
# than a host may be silent.
export COL_HOST_TIMEOUT=1s
begin
stopped=("${node_inner[n2]}")
for pid in $(processes_on n2); do [ "$(cat "/proc/$pid/comm")" != wire_job ] || stopped+=("$pid"); done
[ ${#stopped[@]} -eq 3 ] || fail "no two ranks on n2: $(describe_processes)"
kill -STOP "${stopped[@]}"
outlast
kill -CONT "${stopped[@]}" "${node_started[n2]}"  # nsenter has stopped, too
: >"$enough"
expect_node 0 n1
expect_node 0 n2
for number in 1 2; do expect_lines "$work/n$number.out" 2 && expect_in "$work/n$number.out" '^well$'; done
nothing_left

# All of the job is suspended.
begin
for host in n1 n2; do signal_host STOP $host; done
outlast
for host in n1 n2; do signal_host CONT $host; done
: >"$enough"
expect_node 0 n1
expect_node 0 n2
nothing_left

# A time that is none is an error of both.
COL_HOST_TIMEOUT=soon expect_exit 2 "$COLRUN" --nnodes 2 --rdzv-endpoint localhost:29400 -n 1 true
expect_in "$err" "COL_HOST_TIMEOUT='soon' is not a time of at least 500 ms"
