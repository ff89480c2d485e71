#!/bin/bash
# colrun --trace and COL_TRACE: the file has every call of every rank, as the format asks for it.
. "$(dirname "$0")/lib.sh"
: "${TRACE_CALLS:?set TRACE_CALLS to the trace_calls program}"
check_trace="python3 $(dirname "$0")/check_trace.py"
has_lines() {
  for rank in 0 1 2; do
    expect_in "$out" "^call allreduce forward of rank $rank: $1\$"
    expect_in "$out" "^call allreduce backward of rank $rank: $1\$"
    expect_in "$out" "^call allreduce of rank $rank: $1\$"
    expect_in "$out" "^call barrier of rank $rank: $1\$"
  done
  expect_in "$out" '^call send of rank 0: '
  expect_in "$out" '^rounds some, counters some$'
  expect_in "$out" ", labels \\['', 'backward', 'forward'\\]\$"
}

# ---- By colrun: of all ranks, and every arrow has both ends
expect_exit 0 "$COLRUN" -n 3 --trace "$work/trace.json" "$TRACE_CALLS" 5
expect_in "$err" "trace.json has [0-9]+ events; open it in https://ui.perfetto.dev"
expect_exit 0 $check_trace "$work/trace.json"
has_lines 5
expect_in "$out" '^arrows [1-9][0-9]*, of them without an end 0$'
[ -z "$(ls -A "$TMPDIR")" ] || fail "something is left in TMPDIR"

# ---- A small file has the last calls: less than a sixth of these
expect_exit 0 "$COLRUN" -n 3 --trace "$work/small.json" --trace-limit 64K "$TRACE_CALLS" 40
[ "$(stat -c %s "$work/small.json")" -le 65536 ] || fail "larger than its limit"
expect_exit 0 $check_trace "$work/small.json"
expect_in "$out" '^call barrier of rank 2: [1-9]'

# ---- A rank that is killed has its part
expect_exit 137 "$COLRUN" -n 3 --trace "$work/killed.json" -x COL_FAULT=kill:rank=1,op=9,step=0 "$TRACE_CALLS" 50
expect_exit 0 $check_trace "$work/killed.json"
expect_in "$out" '^call allreduce forward of rank 1: '

# ---- Without colrun's hand: each rank adds its part, and an earlier job's file is replaced
for rounds in 6 4; do
  expect_exit 0 "$COLRUN" -n 3 -x COL_TRACE="$work/own.json" "$TRACE_CALLS" "$rounds"
  expect_exit 0 $check_trace "$work/own.json"
  has_lines "$rounds"
done

# ---- What cannot be
expect_exit 0 "$COLRUN" -n 1 -x COL_TRACE="$work/own.json" -x COL_TRACE_LIMIT=much "$TRACE_CALLS" 0
expect_in "$err" "no trace: .*COL_TRACE_LIMIT is 'much'; it takes a size such as 256M"
expect_exit 2 "$COLRUN" --trace-limit much --trace "$work/x" true
expect_in "$err" "--trace-limit takes a number of bytes such as 64M or 1G, not 'much'"
expect_exit 2 "$COLRUN" --trace "$work/nowhere/x" true
expect_in "$err" '^colrun: --trace: '
