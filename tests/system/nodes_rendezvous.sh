#!/bin/bash
# colrun on each of several hosts, as torchrun is used: one world, and nobody gets in who does not belong.
. "$(dirname "$0")/nodes_lib.sh"
: "${DIGITS_TRAINER:?set DIGITS_TRAINER to the digits trainer}" "${HELLO:?set HELLO to the hello example}"
make_hosts 3
place='echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE'
place+=' $COL_RANK $COL_WORLD_SIZE $COL_LOCAL_RANK $COL_LOCAL_WORLD_SIZE $COL_NODE_RANK $COL_NNODES $(hostname)'

# world HOST:RANKS…: what the ranks of these nodes are to print, the first being node 0.
world() {
  local node rank=0 local_rank size=0 number=0 numbers
  for node in "$@"; do size=$((size + ${node#*:})); done
  for node in "$@"; do
    for ((local_rank = 0; local_rank < ${node#*:}; ++local_rank)); do
      numbers="$rank $size $local_rank ${node#*:} $number $#"
      echo "$numbers $numbers ${node%:*}"
      rank=$((rank + 1))
    done
    number=$((number + 1))
  done
}
# one_world HOST:RANKS…: that is what they have printed, each on its own node.
one_world() {
  local node
  for node in "$@"; do expect_node 0 "${node%:*}"; done
  for node in "$@"; do sort -n "$work/${node%:*}.out"; done | diff <(world "$@") - >&2 ||
    fail "not one world (above: < expected, > seen)"
  nothing_left
}

# Node ranks that are given, and another order of arrival. The host of the endpoint need not be node 0.
start_node n2 --nnodes 2 --node-rank 0 --rdzv-endpoint n1:29400 -n 2 sh -c "$place"
start_node n1 --nnodes 2 --node-rank 1 --rdzv-endpoint n1:29400 -n 2 sh -c "$place"
one_world n2:2 n1:2

# Three nodes by an address, with different numbers of ranks.
for number in 3 2 1; do
  start_node n$number --nnodes 3 --node-rank $((number - 1)) --rdzv-endpoint 10.77.0.1:29400 -n $number sh -c "$place"
done
one_world n1:1 n2:2 n3:3

# Without node ranks, all of 0, 1 and 2 are given out.
for number in 3 1 2; do
  start_node n$number --nnodes 3 --rdzv-endpoint n2:29400 -n 1 sh -c 'echo $COL_NODE_RANK $RANK'
done
for number in 1 2 3; do expect_node 0 n$number; done
cat "$work"/n[123].out | sort | diff <(printf '%s\n' '0 0' '1 1' '2 2') - >&2 || fail "not each node rank once"
nothing_left

# The name of the endpoint becomes known only later, as those of pods do.
names=$(grep -v ' n1$' "$hosts/n2/names")
echo "$names" >"$hosts/n2/names"
start_node n2 --nnodes 2 --node-rank 1 --rdzv-endpoint n1:29400 --rdzv-timeout 30s -n 1 sh -c "$place"
start_node n1 --nnodes 2 --node-rank 0 --rdzv-endpoint n1:29400 --rdzv-timeout 30s -n 1 sh -c "$place"
sleep 1  # that much later
! gone "${node_started[n2]}" || fail "a node did not wait for the name of the endpoint"
echo "$(host_address n1) n1" >>"$hosts/n2/names"
one_world n1:1 n2:1

# The trainer, on two and three nodes.
for nodes in 2 3; do
  for ((number = 1; number <= nodes; ++number)); do
    start_node n$number --nnodes $nodes --node-rank $((number - 1)) --rdzv-endpoint n1:29400 -n 2 \
      "$DIGITS_TRAINER" --no-save --epochs 3
  done
  for ((number = 1; number <= nodes; ++number)); do expect_node 0 n$number 40; done
  expect_in "$work/n1.out" "digits_trainer: $((2 * nodes)) ranks over"
  expect_in "$work/n1.out" "^test accuracy 0\.9[0-9]+ after 3 epochs on $((2 * nodes)) ranks"
  nothing_left
done

# Two nodes of one host, as one tries it out.
for number in 0 1; do
  on n1 "$COLRUN" --nnodes 2 --node-rank $number --rdzv-endpoint localhost:29400 -n 2 "$HELLO" \
    >"$work/$number.out" 2>"$err" </dev/null &
  pids[number]=$!
done
expect_status 0 "${pids[0]}"
expect_status 0 "${pids[1]}"
cat "$work"/[01].out | sort | diff <(for rank in 0 1 2 3; do echo "rank $rank of 4: the sum is 10"; done) - >&2 ||
  fail "two nodes of one host are not one world"
nothing_left

# A node of another job is refused at once, and says why; the others go on waiting for the right one.
start_node n1 --nnodes 2 --rdzv-endpoint n1:29400 --rdzv-id first --rdzv-timeout 60s -n 1 true
start_node n2 --nnodes 2 --rdzv-endpoint n1:29400 --rdzv-id second --rdzv-timeout 60s -n 1 true
expect_node 125 n2 15
expect_in "$work/n2.err" '^colrun: .*second'
start_node n3 --nnodes 2 --rdzv-endpoint n1:29400 --rdzv-id first --rdzv-timeout 60s -n 1 true
expect_node 0 n3
expect_node 0 n1
nothing_left

# So is one that does not know the secret. The secret itself is in nobody's output and on nobody's command line.
secret_node() {
  local host=$1
  shift
  start_on "$host" env "$@" "$COLRUN" --nnodes 2 --rdzv-endpoint n1:29400 --rdzv-timeout 60s -n 1 \
    bash -c ': >$0.$RANK; await test -e $0.go' "$work/secret" >"$work/$host.out" 2>"$work/$host.err"
  node_started[$host]=$started
}
printf 'the-secret-of-this-test\n' >"$work/token"
chmod 600 "$work/token"
secret_node n1 COL_RDZV_TOKEN=the-secret-of-this-test
secret_node n2 COL_RDZV_TOKEN=another-secret
expect_node 125 n2 15
expect_in "$work/n2.err" '^colrun: .*COL_RDZV_TOKEN'
secret_node n2 COL_RDZV_TOKEN=
expect_node 125 n2 15
expect_in "$work/n2.err" '^colrun: .*COL_RDZV_TOKEN'
secret_node n3 COL_RDZV_TOKEN_FILE="$work/token"
wait_until 20 "ranks" test -e "$work/secret.0" -a -e "$work/secret.1"
for pid in $(job_processes); do
  ! env -u COLTEST_TAG grep -q 'the-secret-of-this-test' "/proc/$pid/cmdline" || fail "the secret is on a command line"
done
: >"$work/secret.go"
expect_node 0 n3
expect_node 0 n1
expect_not_in "$work/n1.err" 'secret-of-this-test|another-secret'
expect_not_in "$work/n2.err" 'secret-of-this-test|another-secret'
chmod 644 "$work/token"
secret_node n3 COL_RDZV_TOKEN_FILE="$work/token"
wait_until 10 "an end" gone "${node_started[n3]}"
wait "${node_started[n3]}" && fail "a secret that everybody can read"
expect_in "$work/n3.err" "$work/token.*(0600|chmod)"
nothing_left

# Strangers who come first are dropped, which is said once; and only where the endpoint is somebody listens.
listening() { in_network_of n1 cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == "0A" { print $2 }'; }
endpoint=01004D0A  # 10.77.0.1, as /proc/net/tcp has it
start_node n1 --nnodes 2 --rdzv-endpoint 10.77.0.1:29400 --rdzv-timeout 60s -n 1 \
  bash -c 'await test -e "$0"; echo $RANK' "$work/strangers.go"
wait_until 10 "the meeting" eval 'listening | grep -q "^$endpoint:72D8"'
start_on n3 bash -c 'exec 3<>/dev/tcp/10.77.0.1/29400 4<>/dev/tcp/10.77.0.1/29400 5<>/dev/tcp/10.77.0.1/29400
  echo "GET / HTTP/1.0" >&4; exec 5>&-; : >"$0"; exec sleep 60' "$work/strangers.here"
strangers=$inner
wait_until 10 "strangers" test -e "$work/strangers.here"
start_node n2 --nnodes 2 --rdzv-endpoint 10.77.0.1:29400 --rdzv-timeout 60s -n 1 sh -c 'echo $RANK'
wait_until 20 "the store" eval '[ "$(listening | wc -l)" -ge 2 ]'
! listening | grep -v "^$endpoint:" || fail "somebody listens elsewhere than at the endpoint"
: >"$work/strangers.go"
expect_node 0 n1
expect_node 0 n2
[ "$(grep -c 'dropped a connection from 10.77.0.3' "$work/n1.err")" = 1 ] || fail "the strangers are not said once"
kill "$strangers"
wait_until 10 "the strangers' end" gone "$strangers"
nothing_left

# One never comes: the others say how many did.
for number in 1 2; do
  start_node n$number --nnodes 3 --rdzv-endpoint n1:29400 --rdzv-timeout 3s -n 1 touch "$work/started"
done
expect_node 125 n1 10
expect_node 125 n2 10
expect_in "$work/n1.err" '^colrun: .*2 of 3'
expect_in "$work/n2.err" '^colrun: '
[ ! -e "$work/started" ] || fail "a rank was started although a node was missing"
nothing_left

# Nobody listens at the endpoint.
start_node n2 --nnodes 2 --rdzv-endpoint n3:29400 --rdzv-timeout 2s -n 1 true
expect_node 125 n2 10
expect_in "$work/n2.err" '^colrun: .*n3:29400'
nothing_left
