#!/bin/bash
# colrun --check-nodes: measures the nodes of a job before it starts, and marks a slow link and a small limit.
. "$(dirname "$0")/nodes_lib.sh"
: "${COLBENCH:?set COLBENCH to the colbench program}"
PATH=$(dirname "$COLBENCH"):$PATH
make_hosts 3

check() {  # check CODE: on all three; the line of the job may follow
  local number
  for number in 1 2 3; do
    limit=()
    [ "$number" != "${limited:-}" ] || limit=(prlimit --nofile=300:300)
    local name=n$number
    timeout -k 1 100 on "$name" "${limit[@]}" "$COLRUN" --check-nodes --nnodes 3 --node-rank $((number - 1)) --rdzv-endpoint n1:29400 \
      "${more[@]}" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    eval "pid$number=$!"
  done
  out=$work/n1.out err=$work/n1.err
  for number in 1 2 3; do
    local pid=pid$number
    expect_status "$1" "${!pid}"
  done
}
row() { grep -E "^ *$1 +n$(($1 + 1)) " "$work/n1.out"; }

more=(-n 4 ./no_such_program)
shape_link n3 50mbit
limited=2
check 4
[ "$(row 2 | grep -c 'B/s \*')" = 1 ] || fail "the slow link of n3 has no star"
expect_in "$out" '^n3: bandwidth with everybody: '
row 1 | grep -q ' 300 \*' || fail "the limit of n2 has no star"
expect_in "$out" '^n2: open files: 300, and others have '
row 0 | grep -q 'B/s \*' && fail "n1 has no slow link"
expect_in "$out" '^unfit: mend what has a star, or start the job without .*n2.*n3'
[ ! -s "$work/n2.out" ] || fail "n2 says something, too"

free_link n3
limited=
more=(--json "$work/nodes.json")
check_json='import json, sys; report = json.load(open(sys.argv[1])); assert len(report["nodes"]) == 3 and len(report["pairs"]) == 3, report'
check_any() {  # beside other work, a latency may be odd: fit or not, the report is there
  local number
  for number in 1 2 3; do
    timeout -k 1 100 on n$number "$COLRUN" --check-nodes --nnodes 3 --node-rank $((number - 1)) --rdzv-endpoint n1:29400 "${more[@]}" \
      >"$work/n$number.out" 2>"$work/n$number.err" </dev/null &
  done
  wait
}
check_any
python3 -c "$check_json" "$work/nodes.json" || fail "the report as JSON"
expect_in "$work/n1.out" 'fit: '
expect_not_in "$work/n1.out" ' 300 \*'
nothing_left
