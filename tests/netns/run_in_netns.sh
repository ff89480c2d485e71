#!/usr/bin/env bash
# Runs a program as one rank in each of N network namespaces whose links are held to a bandwidth: a slow cluster on one
# machine, where links and not cores are the bottleneck. Needs root, iproute2 and the tbf queue of the kernel.
#
#   tests/netns/run_in_netns.sh RANKS RATE PROGRAM [ARGUMENT…]     RATE as tc writes it: 200mbit
#
# Rank 0's output is shown; the exit code is rank 0's.
set -euo pipefail
ranks=${1:?how many ranks} rate=${2:?which rate, as 200mbit}
shift 2
[ $# -gt 0 ] || { echo "run_in_netns.sh: which program?" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "run_in_netns.sh: network namespaces need root" >&2; exit 2; }

prefix=col$$
store=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  for ((i = 0; i < ranks; i++)); do ip netns del "$prefix-$i" 2>/dev/null || true; done
  ip netns del "$prefix-sw" 2>/dev/null || true
  rm -rf "$store"
}
trap cleanup EXIT

shape() { ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "$rate" burst 32kb limit 4mb; }

ip netns add "$prefix-sw"
ip -n "$prefix-sw" link add br0 type bridge
ip -n "$prefix-sw" link set br0 up
for ((i = 0; i < ranks; i++)); do
  host=$prefix-$i
  ip netns add "$host"
  ip -n "$host" link set lo up
  ip -n "$host" link add eth0 type veth peer name "p$i" netns "$prefix-sw"
  ip -n "$prefix-sw" link set "p$i" master br0 up
  ip -n "$host" addr add "10.77.0.$((i + 1))/24" dev eth0
  ip -n "$host" link set eth0 up
  shape "$host" eth0          # what the rank sends
  shape "$prefix-sw" "p$i"    # what it receives
done

exec 3>&1
for ((i = ranks - 1; i >= 0; i--)); do
  if [ "$i" = 0 ]; then exec 4>&3; else exec 4>/dev/null; fi
  COL_RANK=$i COL_WORLD_SIZE=$ranks COL_LOCAL_RANK=$i COL_LOCAL_WORLD_SIZE=$ranks COL_NODE_RANK=0 COL_NNODES=1 \
    COL_JOB_ID="$prefix" COL_STORE="file://$store" COL_SOCKET_IFNAME=eth0 \
    ip netns exec "$prefix-$i" "$@" >&4 3>&- 4>&- &
  pids+=($!)
done
code=0
wait "${pids[-1]}" || code=$?
# The others end by themselves: what they wait for has deadlines.
wait
exit "$code"
