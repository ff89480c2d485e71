#!/bin/bash
# colrun --trace over two hosts whose clocks differ: one file, in which calls of all ranks lie at the same time.
. "$(dirname "$0")/nodes_lib.sh"
: "${TRACE_CALLS:?set TRACE_CALLS to the trace_calls program}"
make_hosts 2
# 5,000 seconds after that of the other host.
other_time=(unshare --time --monotonic 5000 --fork --kill-child)
on n2 "${other_time[@]}" true 2>/dev/null || skip "no time namespaces here"

start_node n1 --nnodes 2 --node-rank 0 --rdzv-endpoint n1:29400 -n 2 --trace "$work/trace.json" "$TRACE_CALLS" 20
start_on n2 "${other_time[@]}" "$COLRUN" --nnodes 2 --node-rank 1 --rdzv-endpoint n1:29400 -n 1 \
  --trace "$work/trace.json" "$TRACE_CALLS" 20 >"$work/n2.out" 2>"$work/n2.err"
other=$started
expect_node 0 n1 60
expect_status 0 "$other"
expect_in "$work/n1.err" 'trace.json has [0-9]+ events'
python3 "$(dirname "$0")/check_trace.py" "$work/trace.json" --overlap >"$out" 2>"$err" || fail "no good trace"
for rank in 0 1 2; do expect_in "$out" "^call allreduce backward of rank $rank: 20\$"; done
expect_in "$out" ', of them without an end 0$'
expect_in "$out" '^every barrier is on all ranks at one time, to [0-9]+ µs$'
grep -q 'rank 2 (n2, pid [0-9]*, clock ± [0-9]* µs)' "$work/trace.json" || fail "rank 2 has no error of its clock"
nothing_left
