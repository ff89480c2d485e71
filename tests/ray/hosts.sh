#!/bin/bash
# Two hosts with a node of Ray each: groups over both, whose data takes Gloo's way; then one of the hosts dies.
. "$(dirname "$0")/../system/nodes_lib.sh"
: "${PYTHON:?set PYTHON to the Python of the package, which has Ray}"
here=$(realpath "$(dirname "$0")")
make_hosts 2
RAY_ADDRESS=$(host_address n1):6379
export RAY_AUTH_MODE=disabled RAY_ADDRESS TAKE_DOWN=$work/take_down  # the test makes that file

start_ray() {  # start_ray HOST OPTION…
  start_on "$1" env -u RAY_ADDRESS "$PYTHON" -m ray.scripts.scripts start --node-ip-address "$(host_address "$1")" \
    --num-cpus 4 --object-store-memory 268435456 --disable-usage-stats --block "${@:2}" >"$work/$1.out" 2>"$work/$1.err"
  wait_until 30 "Ray on $1" grep -q 'Ray runtime started' "$work/$1.out"
}
start_ray n1 --head --port 6379 --include-dashboard=false --temp-dir "$TMPDIR/ray"
start_ray n2 --address "$RAY_ADDRESS"

start_on n1 "$PYTHON" -m pytest -q -p no:cacheprovider "$here/test_two_nodes.py" >"$out" 2>"$err"
wait_until 100 "the last test" eval '[ -e "$TAKE_DOWN" ] || gone $started'
kill -KILL "$(<"$hosts/n2/keeper")"
wait_until 30 "the end" gone $started
expect_status 0 $started
