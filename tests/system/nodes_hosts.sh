#!/bin/bash
# Nodes of several ranks: neighbours share memory, and a wire is for the others, each of those that $WIRES names. What a
# program asks for by name is all that there is. A rank that dies is named on every node.
. "$(dirname "$0")/nodes_lib.sh"
: "${DIGITS_TRAINER:?set DIGITS_TRAINER to the digits trainer}" "${COLCHECK:?set COLCHECK to colcheck}"
: "${WIRES:?set WIRES to gloo, ucx, or both}"
make_hosts 4

# on_nodes NODES RANKS ARGUMENT…: colrun on the first nodes, with that many ranks on each. The first one is to end with
# 0, and so are the others.
on_nodes() {
  local nodes=$1 ranks=$2 number
  shift 2
  for ((number = 1; number <= nodes; ++number)); do
    start_node n$number --nnodes "$nodes" --node-rank $((number - 1)) --rdzv-endpoint n1:29400 -n "$ranks" "$@"
  done
}
all_good() {
  local number
  expect_node 0 n1 120
  for ((number = 2; number <= $1; ++number)); do expect_node 0 n$number; done
  nothing_left
}

declare -A backend_over=([gloo]=hosts [ucx]=hosts_ucx)

# Without a word, Gloo is the wire. Where a program asks for it by name, it is for all.
on_nodes 2 2 "$DIGITS_TRAINER" --no-save --epochs 1
all_good 2
expect_in "$work/n1.out" '4 ranks over hosts,'
on_nodes 2 2 "$COLCHECK" --only messages --backend gloo --np 4 --device cpu --seed 1
all_good 2
expect_in "$work/n1.out" '^[1-9][0-9,]* cases passed, 0 failed, 0 skipped'

for wire in $WIRES; do
  backend=${backend_over[$wire]}
  on_nodes 2 2 env COL_BACKEND="$wire" COL_LOG=info "$DIGITS_TRAINER" --no-save --epochs 2
  all_good 2
  expect_in "$work/n1.out" "4 ranks over $backend,"
  expect_in "$work/n1.err" "backend $backend, shared memory on each of 2 hosts, $wire between them \\(.* eth0"

  # All of a quick run where that is soon done, and of what depends on the shape more shapes.
  for shape in "2 2" "2 4" "4 2"; do
    read -r nodes ranks <<<"$shape"
    properties=(--quick)
    [ "$shape" = "2 2" ] || properties=(--only exact,messages,v_forms,rank_order)
    on_nodes "$nodes" "$ranks" "$COLCHECK" "${properties[@]}" --backend "$backend" --np $((nodes * ranks)) \
      --device cpu --seed 1
    all_good "$nodes"
    expect_in "$work/n1.out" '^[1-9][0-9,]* cases passed, 0 failed, 0 skipped'
  done

  # Ranks dealt to three hosts in turn, by hand: no host has neighbouring ranks.
  mkdir "$work/store.$wire"
  dealt=()
  for rank in 0 1 2 3 4; do
    start_on n$((rank % 3 + 1)) env COL_RANK="$rank" COL_WORLD_SIZE=5 COL_LOCAL_RANK=$((rank / 3)) \
      COL_STORE="file://$work/store.$wire" timeout -k 1 120 "$COLCHECK" --only v_forms,rank_order --backend "$backend" --np 5 --device cpu \
      --seed 1 >"$work/rank.$rank" 2>"$work/rank.$rank.err"
    dealt+=("$started")
  done
  for rank in "${dealt[@]}"; do expect_status 0 "$rank"; done
  expect_in "$work/rank.0" '^[1-9][0-9,]* cases passed, 0 failed, 0 skipped'
  nothing_left

  # A rank that is killed: its neighbour and the other node name it.
  on_nodes 2 2 env COL_BACKEND="$wire" "$DIGITS_TRAINER" --no-save --epochs 100000
  wait_until 20 "ranks on n2" eval '[ "$(processes_on n2 | wc -l)" -ge 4 ]'
  wait_until 30 "an epoch" grep -q epoch "$work/n1.out"
  victim=
  for pid in $(processes_on n2); do
    grep -qz '^RANK=3$' "/proc/$pid/environ" 2>/dev/null && [ "$(cat "/proc/$pid/comm")" = digits_trainer ] && victim=$pid
  done
  [ -n "$victim" ] || fail "no rank 3 on n2: $(describe_processes)"
  kill -KILL "$victim"
  expect_node 137 n1 20
  expect_node 137 n2 20
  for number in 1 2; do expect_in "$work/n$number.err" '^colrun: rank 3 \(pid [0-9]+, host n2\) was killed by SIGKILL'; done
  nothing_left_soon
done
