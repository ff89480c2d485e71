#!/bin/bash
# Ranks on two hosts over UCX: they find one another, a loss is known soon and named, and strangers change nothing.
. "$(dirname "$0")/wire_lib.sh"
export COL_BACKEND=ucx
store=file://$work/store
make_hosts 3  # no rank is on n3

# One world, over the interface between the hosts.
start_ranks 2 timeout -k 1 40 "$HELLO"
expect_all_good
cat "$work"/rank.[0-3] | sort | diff <(printf 'rank %s of 4: the sum is 10\n' 0 1 2 3) - >&2 || fail "not one world"
expect_in "$work/n0.err" 'backend hosts_ucx, shared memory on each of 2 hosts, ucx between them \(UCX [0-9.]+ over eth0'
nothing_left

# A name that is none of an interface is one line that says what there is.
start_ranks 1 env COL_SOCKET_IFNAME=eth9 timeout -k 1 40 "$HELLO"
for pid in "${pids[@]}"; do wait "$pid" && fail "a group over an interface that does not exist"; done
expect_in "$work/n0.err" 'COL_SOCKET_IFNAME=eth9 names no interface .*eth0 \(10\.77\.0\.[12]\)'
nothing_left

# Of two interfaces, one is down: the other one is used.
on n1 ip link add eth1 type veth peer name unused && on n1 ip address add 10.78.0.1/24 dev eth1 || fail "no second interface"
start_ranks 1 env COL_SOCKET_IFNAME=eth1,eth0 timeout -k 1 40 "$HELLO"
expect_all_good
expect_in "$work/n0.err" 'backend ucx, UCX [0-9.]+ over eth0'
nothing_left
on n1 ip link del eth1

# A host without UCX: who asks for it by name is told where it is missing; else it is not needed.
libcol=$(ldd "$HELLO" | awk '/libcol\.so/ { print $3 }')
mkdir "$work/without"
cp "$libcol" "$(dirname "$libcol")/libcol_gloo.so" "$work/without"
without=(bash -c 'on_host "$@"' - n2 LD_LIBRARY_PATH="$work/without" COL_PLUGIN_PATH= -- timeout -k 1 40 "$HELLO")
start_ranks 2 "${without[@]}"
expect_refused 10 "backend 'ucx' cannot be used here: libcol_ucx\.so is in none of"
for rank in 0 1; do
  expect_in "$work/n$rank.err" 'rank [23] \(pid [0-9]+ on n2\) says: .* COL_PLUGIN_PATH; or name a backend that all .*COL_BACKEND=gloo'
done
start_ranks 2 env -u COL_BACKEND "${without[@]}"
expect_all_good
expect_in "$work/n0.err" 'backend hosts, shared memory on each of 2 hosts, gloo between them'
nothing_left

# A host whose name is too long for UCX, which would end the process: the same.
on n2 hostname "$(printf 'h%.0s' {1..64})" || fail "no long name"
start_ranks 2 timeout -k 1 40 "$HELLO"
expect_refused 10 "backend 'ucx' cannot be used here: the name of this host has 64 characters, and UCX .* 63 at most; give the"
start_ranks 2 env -u COL_BACKEND timeout -k 1 40 "$HELLO"
expect_all_good
on n2 hostname n2
nothing_left

# What UCX keeps for a rank: beyond what the same takes over Gloo, eight megabytes at most.
private_kib() { awk '/^Private_(Clean|Dirty):/ { kib += $2 } END { print kib }' "/proc/$1/smaps_rollup"; }
declare -A memory
for wire in gloo ucx; do
  start_ranks 4 env COL_BACKEND=$wire "$WIRE_JOB" 4000000 "$work/memory.$wire"
  wait_until 30 "the first calls" ready "$work/memory.$wire" 8
  memory[$wire]=0
  for pid in "${inners[@]}"; do
    kib=$(private_kib "$pid")
    [ "$kib" -le "${memory[$wire]}" ] || memory[$wire]=$kib
  done
  kill -KILL "${inners[@]}"
  nothing_left_soon
done
echo "memory of a rank: ${memory[gloo]} KiB over Gloo, ${memory[ucx]} over UCX"
[ $((memory[ucx] - memory[gloo])) -le 8192 ] || fail "UCX takes ${memory[ucx]} KiB, Gloo ${memory[gloo]}"

# A process is killed while small, and while large messages are under way: the others know within a second, also those
# that share a host with it.
for bytes in 8 4000000; do
  start_ranks 2 "$WIRE_JOB" $bytes "$work/killed.$bytes"
  wait_until 20 "the first calls" ready "$work/killed.$bytes" 4
  began=$(now_ms)
  kill -KILL "${inners[3]}"
  expect_loss "0 1 2" 3 1000
  nothing_left_soon
done

# The link is cut, idle or under load: both sides know within five seconds. A short cut is no loss.
for bytes in 8 4000000; do
  begin 1 $bytes
  cut_link n2
  wait_until 10 "a cut that is felt" felt_on n1 n2
  mend_link n2
  expect_well
  begin 1 $bytes
  began=$(now_ms)
  cut_link n2
  expect_loss "0 1" "0 1" 5000  # each blames the other, or says what the other has said first
  mend_link n2
  nothing_left_soon
done

# The same between ranks that sleep in shared memory: a rank that shares a host with its neighbour knows as soon.
start_ranks 2 "$WIRE_JOB" 8 "$work/shared.cut"
wait_until 20 "the first calls" ready "$work/shared.cut" 4
began=$(date +%s%3N)
cut_link n2
expect_loss "0 1 2 3" "0 1 2 3" 5000
mend_link n2
nothing_left_soon

# All of a host is frozen. A rank that computes for three times as long as a host may be silent is not.
freeze n2 "2 3" "0 1" 8
freeze n1 "0 1" "2 3" 4000000
COL_HOST_TIMEOUT=1s begin 2 8 3
expect_well

# Strangers, at the ports of a rank that works. Without Gloo, which listens to all and believes nobody, the ports are UCX's.
mkdir "$work/alone"
cp "$libcol" "$(dirname "$libcol")/libcol_ucx.so" "$work/alone"
start_ranks 1 env LD_LIBRARY_PATH="$work/alone" COL_PLUGIN_PATH= "$WIRE_JOB" 8 "$work/strangers"
wait_until 20 "the first calls" ready "$work/strangers" 2
ports=$(on n1 ss -Htln 'src 10.77.0.1' | awk '{sub(/.*:/, "", $4); print $4}')
[ -n "$ports" ] || fail "no port of UCX's"
# shellcheck disable=SC2086 # a list of words
expect_exit 0 on n2 python3 -c "$strangers" $ports
# The kernel answers nobody on a host without a rank.
for port in $ports; do
  expect_exit 1 on n3 python3 -c "import socket; socket.create_connection(('10.77.0.1', $port), timeout=2)"
  expect_in "$err" 'timed out'
done
[ ! -s "$work/rank.0" ] && [ ! -s "$work/rank.1" ] || fail "strangers: $(cat "$work"/rank.[01])"
kill -KILL "${inners[@]}"
nothing_left_soon
