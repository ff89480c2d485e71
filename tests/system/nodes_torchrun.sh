#!/bin/bash
# Ranks that torchrun itself starts on two hosts are one world, which meets at MASTER_ADDR.
. "$(dirname "$0")/nodes_lib.sh"
: "${HELLO:?set HELLO to the hello example}"
for name in $(compgen -e); do
  case $name in COL_[A-Z]* | TORCHELASTIC_* | *WORLD_SIZE | *LOCAL_RANK) unset "$name" ;; esac
done
unset GROUP_RANK MASTER_ADDR MASTER_PORT
export COL_TIMEOUT=25s
command -v torchrun >/dev/null || skip "no torchrun (apt-get install python3-torch)"
make_hosts 2

# Each of them loads PyTorch first, which takes seconds on a busy machine. Output is redirected for a rank that is not there:
# for none at all, PyTorch 1.13 fails under Python 3.11.
for node in 1 0; do
  start_on n$((node + 1)) timeout -k 1 150 torchrun --no_python --redirects 9:1 --tee 9:1 --nnodes 2 --nproc_per_node 2 --node_rank $node \
    --master_addr n1 --master_port 29500 "$HELLO" >"$work/n$((node + 1)).out" 2>"$work/n$((node + 1)).err"
  agents[node]=$started
done
expect_status 0 "${agents[0]}"
expect_status 0 "${agents[1]}"
cat "$work"/n[12].out | sort | diff <(printf 'rank %s of 4: the sum is 10\n' 0 1 2 3) - >&2 ||
  fail "not one world (above: < expected, > seen)"
