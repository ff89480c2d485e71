#!/bin/bash
# A host that freezes, a link that is cut, an interface that goes down: within 5 s, the other host has one line that names
# the host and says what to do. nodes_frozen.sh does the same under colrun.
. "$(dirname "$0")/wire_lib.sh"
make_hosts 2

# Over Gloo alone, and with shared memory inside of the hosts; n1 is where rank 0 serves the store.
COL_BACKEND=gloo freeze n2 "2 3" "0 1" 8
COL_BACKEND=hosts freeze n2 "2 3" "0 1" 4000000
COL_BACKEND=hosts freeze n1 "0 1" "2 3" 8
COL_BACKEND=gloo freeze n1 "0 1" "2 3" 4000000
export COL_BACKEND=gloo

# The link is cut: both sides know it. A short cut is no loss.
for bytes in 8 4000000; do
  begin 2 $bytes
  cut_link n2
  wait_until 10 "a cut that is felt" felt_on n1 n2
  mend_link n2
  expect_well
  begin 2 $bytes
  began=$(now_ms)
  cut_link n2
  expect_loss "0 1" "2 3" 5000
  expect_loss "2 3" "0 1" 5000
  expect_in "$work/rank.0" 'host n2 \(ranks 2, 3\) .*its kernel does not answer.*the link to it is cut; look at'
  expect_in "$work/rank.2" 'host n1 \(ranks 0, 1\) .*its kernel does not answer.*the link to it is cut; look at'
  mend_link n2
  expect_all_good
  nothing_left_soon
done

# The interface goes down.
begin 1 8
began=$(now_ms)
on n2 ip link set eth0 down
expect_loss 0 1 5000
expect_loss 1 0 5000
on n2 ip link set eth0 up
expect_all_good
nothing_left_soon
