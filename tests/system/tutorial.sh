#!/bin/bash
# The programs of docs/tutorial, and of docs/rank-dies.md, do what the pages say.
OWN_PROCESSES=${OWN_PROCESSES:-yes}
. "$(dirname "$0")/lib.sh"
: "${COLJOB:?}" "${HELLO:?}" "${SOLVER:?}" "${TRAINING:?}" "${OVERLAP:?}" "${TROUBLE:?}" "${ELASTIC:?}" "${PAGES:?set PAGES to docs/tutorial}"
hangs=120 # of more ranks than processors, each small step waits for a turn of the next rank

# in_page PAGE: each line of $out is one of the page. Where a compiler joins products and sums, last digits may differ.
in_page() {
  local line
  [ -s "$out" ] || fail "nothing to look for in $1"
  [ "$(uname -m)" = x86_64 ] || return 0
  while IFS= read -r line; do grep -qxF -- "$line" "$PAGES/$1" || fail "$1 does not have this line: $line"; done <"$out"
}

# ---- 1 hello
expect_exit 0 "$HELLO"
in_page 1-hello.md
expect_exit 0 "$COLRUN" -n 4 --label "$HELLO"
expect_lines "$out" 4
in_page 1-hello.md

# ---- 2 a solver. The page's ranks share memory; this build may have Gloo only.
solved() {  # solved RANKS
  expect_in "$out" "^ranks: $1, over [a-z]+, iterations: ([0-9]+), alone: \\1\$"
  expect_in "$out" '^heat in 1000, heat out 1000\.0000$'
  expect_in "$out" '^largest difference from one rank: 0$'
}
expect_exit 0 "$COLRUN" -n 3 "$SOLVER"
solved 3
expect_exit 0 "$COLRUN" -n 4 "$SOLVER"
solved 4
sed -i 's/over gloo/over shm/' "$out"
in_page 2-solver.md

# ---- 3 training: the losses of one process
expect_exit 0 "$TRAINING"
in_page 3-training.md
grep ^epoch "$out" >"$work/alone"
expect_exit 0 "$COLRUN" -n 4 "$TRAINING"
in_page 3-training.md
expect_in "$out" '^ranks: 4, .* equal everywhere$'
grep ^epoch "$out" | diff "$work/alone" - >&2 || fail "the losses of 4 ranks are not those of one (above: < one, > four)"
expect_lines "$work/alone" 5

# ---- 4 overlap: it is faster. A busy machine may spoil one try.
faster() {
  expect_exit 0 "$COLRUN" -n 4 "$OVERLAP"
  expect_in "$out" '^the sums are the same$'
  [ "$(grep -oE 'hides -?[0-9]+' "$out" | cut -d' ' -f2)" -gt 0 ]
}
faster || faster || faster || fail "overlap hides nothing"

# ---- 5 several nodes: two of them on this machine. A port may be taken; then another one is tried.
two_nodes() {
  local options=(--nnodes 2 --rdzv-endpoint "localhost:$((20000 + RANDOM % 10000))" --rdzv-timeout 10s -n 1)
  local other code
  timeout -k 1 30 "$COLRUN" "${options[@]}" --node-rank 1 "$SOLVER" >"$work/two" 2>&1 &
  other=$!
  timeout -k 1 30 "$COLRUN" "${options[@]}" --node-rank 0 "$SOLVER" >"$out" 2>"$err"
  code=$?
  wait $other && [ $code -eq 0 ]
}
two_nodes || two_nodes || two_nodes || fail "two nodes on this machine"
solved 2
sed -i 's/over gloo/over shm/' "$out"
in_page 5-nodes.md
[ ! -s "$work/two" ] || fail "the second node says: $(cat "$work/two")"

# ---- 6 when it goes wrong
expect_exit 1 "$COLRUN" -n 4 "$TROUBLE" mismatch
expect_in "$err" '^mismatch: .*rank 2 is the odd one; ranks 0, 1, 3 called allreduce of 1000 float32.*rank 2 called allreduce of 999 '
expect_exit 0 "$COLRUN" -n 4 --keep-going --exit-policy rank0 "$TROUBLE" lost
expect_in "$out" "^peer_lost: group 'default': rank 2 "
expect_in "$out" '^gone on with 3 ranks: the sum is 3$'
expect_in "$err" '^colrun: rank 2 .* was killed by SIGKILL'
expect_exit 1 "$TROUBLE" something
expect_in "$err" '^invalid_argument: say mismatch, lost or hang$'

# ---- When a rank dies: the others come to what all would have come to
expect_exit 0 "$COLRUN" -n 4 "$ELASTIC"
expect_lines "$out" 4
value=$(grep -oE ': [0-9.]+ after 200 steps$' "$out" | sort -u)
[ "$(wc -l <<<"$value")" -eq 1 ] || fail "ranks have different values: $value"
for rank in 0 2; do
  COL_FAULT="kill:rank=$rank,op=100,group=default" expect_exit 137 "$COLRUN" -n 4 --keep-going "$ELASTIC"
  for number in 0 1 2; do expect_in "$out" "^epoch 1, rank $number of 3$value"; done
  expect_in "$err" "^colrun: rank $rank .* was killed by SIGKILL"
done

sentence="in barrier #1 of group 'default': rank 2 \\(pid [0-9]+\\) has not called it: it is in its own code"
"$COLRUN" -n 4 --timeout 60s "$TROUBLE" hang >"$work/job" 2>&1 &
job=$!
is_stuck() {
  "$COLJOB" why --after 300ms >"$out" 2>"$err"
  [ $? -eq 1 ] && grep -qE "^ranks 0-1, 3 have waited for .* $sentence" "$out"
}
wait_until 20 "coljob names rank 2" is_stuck
kill -TERM $job
expect_status 143 $job
expect_exit 124 "$COLRUN" -n 4 --timeout 500ms "$TROUBLE" hang
expect_in "$err" "^colrun: ranks 0-1, 3 have waited for .* $sentence"
nothing_left
