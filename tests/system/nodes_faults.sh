#!/bin/bash
# What goes wrong between hosts that live: packets that are too large, an interface that is down, strangers. Each is one line
# that says what to do. And what is no fault: a rank that computes, one that is stopped, a job that is suspended.
. "$(dirname "$0")/wire_lib.sh"
make_hosts 3  # no rank is on n3
export COL_BACKEND=gloo

# No fault: rank 0, which stands for its host, computes for three times as long as a host may be silent.
COL_HOST_TIMEOUT=1s begin 2 8 3
expect_well

# No fault: a rank that stands for no host is stopped, by a debugger, say.
COL_HOST_TIMEOUT=1s begin 2 8
kill -STOP "${inners[3]}"
outlast
kill -CONT "${inners[3]}" "${pids[3]}"  # nsenter has stopped, too
expect_well

# No fault: all hosts are suspended together.
COL_HOST_TIMEOUT=1s begin 2 8
for host in n1 n2; do signal_host STOP $host; done
outlast
for host in n1 n2; do signal_host CONT $host; done
expect_well

# Small messages pass, and large packets vanish.
if command -v nft >/dev/null && on n2 nft add table inet small 2>"$err"; then
  on n2 nft add chain inet small input '{ type filter hook input priority 0; }'
  on n2 nft add rule inet small input meta length '>' 1000 drop
  began=$(now_ms)
  start_ranks 1 "$WIRE_JOB" 4000000 "$work/large.ready"
  expect_loss "0 1" 1 12000 timeout
  for rank in 0 1; do
    expect_in "$work/rank.$rank" 'from rank 0 on host n1 reach rank 1 on host n2, but large packets are lost: an MTU.*`ip link`'
  done
  on n2 nft delete table inet small
  expect_all_good
  nothing_left_soon
else
  echo "not tested: large packets that vanish (apt-get install nftables): $(cat "$err")"
fi

# Of two interfaces, one is down: the other one is used. A name that is none is one line that says what there is.
for number in 1 2; do
  on n$number ip link add eth1 type veth peer name unused || fail "no second interface"
  on n$number ip address add 10.78.0.$number/24 dev eth1
done
COL_SOCKET_IFNAME=eth1,eth0 start_ranks 1 timeout -k 1 40 "$HELLO"
expect_all_good
nothing_left
for wrong in eth1 eth9; do
  COL_SOCKET_IFNAME=$wrong start_ranks 1 timeout -k 1 40 "$HELLO"
  for pid in "${pids[@]}"; do wait "$pid" && fail "a group over $wrong"; done
  expect_in "$work/n0.err" "COL_SOCKET_IFNAME=$wrong names no interface .*eth0 \(10\.77\.0\.[12]\)"
  nothing_left
done

# A host with another version of col: what each says, and what to do. Not over the store of rank 0, which ends with it.
store=file://$work/store
start_ranks 2 bash -c 'on_host "$@"' - n2 LD_PRELOAD="${OTHER_VERSION:?}" -- timeout -k 1 40 "$HELLO"
says='(rank [0-3] \(pid [0-9]+|ranks [0-3], [0-3] \()'
expect_refused 10 "version of col: $says ?(on )?n1\) says? [0-9.]+, $says ?(on )?n2\) says? 9\.9\.9; install the same version on all"
store=

# Strangers at all ports of the host of rank 0: nothing happens.
begin 1 8
ports=$(ports_of_n1)
[ -n "$ports" ] || fail "no port is open"
# shellcheck disable=SC2086 # a list of words
expect_exit 0 on n3 python3 -c "$strangers" $ports
expect_well
