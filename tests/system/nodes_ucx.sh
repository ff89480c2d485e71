#!/bin/bash
# Ranks on two hosts over UCX: they find one another, a loss is known soon and named, and strangers change nothing.
. "$(dirname "$0")/nodes_lib.sh"
: "${HELLO:?set HELLO to the hello example}" "${WIRE_JOB:?set WIRE_JOB to the program wire_job}"
for name in $(compgen -e); do
  case $name in COL_[A-Z]* | UCX_* | SLURM_* | OMPI_* | PMI_* | PMIX_* | TORCHELASTIC_*) unset "$name" ;; esac
done
export COL_TIMEOUT=25s COL_BACKEND=ucx
make_hosts 3  # no rank is on n3

# start_ranks PER_HOST COMMAND…: of one world on both hosts; $pids[RANK] and the output in $work/rank.RANK, n?.err.
worlds=0
start_ranks() {
  local per_host=$1 rank
  shift
  pids=()
  worlds=$((worlds + 1))
  inners=()
  for ((rank = 0; rank < 2 * per_host; ++rank)); do
    start_on n$((rank / per_host + 1)) env COL_RANK=$rank COL_WORLD_SIZE=$((2 * per_host)) \
      COL_LOCAL_RANK=$((rank % per_host)) COL_LOCAL_WORLD_SIZE="$per_host" COL_NODE_RANK=$((rank / per_host)) \
      COL_NNODES=2 COL_JOB_ID=wire.$worlds COL_STORE="file://$work/store" COL_LOG=info "$@" \
      >"$work/rank.$rank" 2>"$work/n$rank.err"
    pids+=("$started")
    inners+=("$inner")
  done
}
expect_all_good() {
  local pid
  for pid in "${pids[@]}"; do expect_status 0 "$pid"; done
}
# ready PATH NUMBER: that many ranks have made their first call.
ready() { [ "$(find "$(dirname "$1")" -name "$(basename "$1").*" | wc -l)" -eq "$2" ]; }

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

# lose WHAT RANKS LIMIT: ranks that outlived it have said so within LIMIT ms, since $began, and have named one of RANKS.
said_by() {
  local rank code named at rest
  for rank in $1; do
    read -r code named at rest <"$work/rank.$rank" || return 1
  done
}
expect_loss() {
  local survivors=$1 ranks=$2 limit=$(($3 * ${COLTEST_SLACK:-1})) rank code named at rest
  wait_until 20 "the survivors to notice" said_by "$survivors"
  for rank in $survivors; do
    read -r code named at rest <"$work/rank.$rank"
    [ "$code" = peer_lost ] || fail "rank $rank says $code: $rest"
    [[ " $ranks " == *" $named "* ]] || fail "rank $rank blames rank $named: $rest"
    echo "rank $rank: after $((at - began)) ms: $rest"
    [ $((at - began)) -le "$limit" ] || fail "rank $rank noticed after $((at - began)) ms: $rest"
  done
}

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
  began=$(date +%s%3N)
  kill -KILL "${inners[3]}"
  expect_loss "0 1 2" 3 1000
  nothing_left_soon
done

# The link is cut, idle or under load: both sides know within five seconds. A cut of a second is no loss.
for bytes in 8 4000000; do
  start_ranks 1 "$WIRE_JOB" $bytes "$work/cut.$bytes"
  wait_until 20 "the first calls" ready "$work/cut.$bytes" 2
  cut_link n2
  sleep 1  # the cut
  mend_link n2
  sleep 1  # in which it would be noticed
  [ ! -s "$work/rank.0" ] && [ ! -s "$work/rank.1" ] || fail "a cut of a second: $(cat "$work"/rank.[01])"
  began=$(date +%s%3N)
  cut_link n2
  expect_loss "0 1" "0 1" 5500  # each blames the other, or says what the other has said first
  mend_link n2
  nothing_left_soon
done

# The same between ranks that sleep in shared memory: a rank that shares a host with its neighbour knows as soon.
start_ranks 2 "$WIRE_JOB" 8 "$work/shared.cut"
wait_until 20 "the first calls" ready "$work/shared.cut" 4
began=$(date +%s%3N)
cut_link n2
expect_loss "0 1 2 3" "0 1 2 3" 5500
mend_link n2
nothing_left_soon

# Strangers at every port that listens, of a rank that works: silent, chatty, with bytes of no meaning, and gone again.
strangers='
import os, socket, struct, sys
ports = [int(a) for a in sys.argv[1:]]
kept = []
for manner in range(200):
    for port in ports:
        s = socket.create_connection(("10.77.0.1", port), timeout=5)
        if manner % 4 == 1: s.sendall(b"GET / HTTP/1.1\r\n\r\n" * 20)
        if manner % 4 == 2: s.sendall(os.urandom(8))
        if manner % 4 == 3: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); s.close(); continue
        kept.append(s)
'
start_ranks 1 "$WIRE_JOB" 8 "$work/strangers"
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
