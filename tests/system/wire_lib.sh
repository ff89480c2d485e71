# shellcheck shell=bash
# Ranks on several hosts that no launcher watches, for tests of what is between the hosts. Sourced instead of nodes_lib.sh.
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
: "${HELLO:?set HELLO to the hello example}" "${WIRE_JOB:?set WIRE_JOB to the program wire_job}"
for name in $(compgen -e); do
  case $name in COL_[A-Z]* | UCX_* | SLURM_* | OMPI_* | PMI_* | PMIX_* | TORCHELASTIC_*) unset "$name" ;; esac
done
export COL_TIMEOUT=25s

# start_ranks PER_HOST COMMAND…: of one world on n1 and n2, which meet at $store, or at rank 0 without it. $pids and $inners by
# rank, the output in $work/rank.RANK, and in $work/n?.err.
worlds=0
store=
enough=$work/enough
pids=()
start_ranks() {
  local per_host=$1 rank place
  shift
  pids=()
  inners=()
  worlds=$((worlds + 1))
  for ((rank = 0; rank < 2 * per_host; ++rank)); do
    place=(COL_RANK=$rank COL_WORLD_SIZE=$((2 * per_host)) COL_LOCAL_RANK=$((rank % per_host))
      COL_LOCAL_WORLD_SIZE="$per_host" COL_NODE_RANK=$((rank / per_host)) COL_NNODES=2 COL_STORE="$store")
    # As torchrun says it, so that rank 0 serves the others.
    [ -n "$store" ] || place=(RANK=$rank WORLD_SIZE=$((2 * per_host)) LOCAL_RANK=$((rank % per_host))
      LOCAL_WORLD_SIZE="$per_host" GROUP_RANK=$((rank / per_host)) GROUP_WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=29500
      TORCHELASTIC_RUN_ID="$worlds" TORCHELASTIC_RESTART_COUNT=0 COL_RDZV_ENDPOINT=n1:29401)
    start_on n$((rank / per_host + 1)) env "${place[@]}" COL_JOB_ID=wire.$worlds COL_LOG=info "$@" \
      >"$work/rank.$rank" 2>"$work/n$rank.err"
    pids+=("$started")
    inners+=("$inner")
  done
}
# on_host HOST VARIABLE… -- COMMAND…: for start_ranks: with these only in the ranks of that host.
on_host() {
  local host=$1 variables=()
  shift
  for (( ; $# > 0; )); do
    [ "$1" != -- ] || break
    variables+=("$1")
    shift
  done
  shift
  [ "$(hostname)" != "$host" ] || export "${variables[@]}"
  exec "$@"
}
export -f on_host
# expect_refused SECONDS TEXT: all ranks have ended with an error that says so.
expect_refused() {
  local rank
  for rank in "${!pids[@]}"; do
    wait_until "$1" "rank $rank to give up" gone "${pids[rank]}"
    wait "${pids[rank]}" && fail "rank $rank ended well"
    expect_in "$work/n$rank.err" "$2"
  done
  nothing_left
}
expect_all_good() {
  local pid
  for pid in "${pids[@]}"; do
    wait_until 40 "the ranks to end" gone "$pid"
    expect_status 0 "$pid"
  done
}
# ready PATH NUMBER: that many ranks have made their first call.
ready() { [ "$(find "$(dirname "$1")" -name "$(basename "$1").*" | wc -l)" -eq "$2" ]; }

# ceiling MS: what is promised within MS milliseconds may take so long in a test: a machine that others share stands still
# for seconds, now and then.
ceiling() { echo $(($1 * 3)); }

# expect_loss RANKS BLAMED LIMIT [CODES]: these ranks have said so within the ceiling of LIMIT ms, since $began, and have
# named one of BLAMED.
said_by() {
  local rank code named at rest
  for rank in $1; do
    read -r code named at rest <"$work/rank.$rank" || return 1
  done
}
expect_loss() {
  local survivors=$1 ranks=$2 codes=${4:-peer_lost} limit rank code named at rest
  limit=$(ceiling "$3")
  wait_until 20 "the survivors to notice" said_by "$survivors"
  for rank in $survivors; do
    read -r code named at rest <"$work/rank.$rank"
    [[ " $codes " == *" $code "* ]] || fail "rank $rank says $code: $rest"
    [[ " $ranks " == *" $named "* ]] || fail "rank $rank blames rank $named: $rest"
    echo "rank $rank: after $((at - began)) ms: $rest"
    [ $((at - began)) -le "$limit" ] || fail "rank $rank noticed after $((at - began)) ms: $rest"
  done
}
now_ms() { date +%s%3N; }

# begin PER_HOST BYTES [SECONDS]: ranks that work until $enough is there.
begin() {
  local job
  rm -f "$enough" "$work"/job.*
  job=$work/job.$worlds
  start_ranks "$1" "$WIRE_JOB" "$2" "$job" "$enough" "${3:-0}"
  wait_until 30 "the first calls" ready "$job" $((2 * $1))
}
expect_well() {
  local rank
  : >"$enough"
  expect_all_good
  for rank in "${!pids[@]}"; do expect_in "$work/rank.$rank" '^well$'; done
  nothing_left
}

# For longer than a host may be silent where COL_HOST_TIMEOUT is 1s. Nothing happens in it, so there is nothing to wait for.
outlast() { sleep 2.5; }

# freeze HOST RANKS OTHERS BYTES: all processes of a host are frozen, and the other ranks know it. Continued, the frozen ranks
# end, too.
freeze() {
  local frozen=$1 ranks=$2 others=$3 rank
  begin 2 "$4"
  signal_host STOP "$frozen"
  began=$(now_ms)
  expect_loss "$others" "$ranks" 5000
  for rank in $others; do
    expect_in "$work/rank.$rank" "host $frozen \(ranks ${ranks/ /, }\) .*its kernel answers.*SIGSTOP.*COL_HOST_TIMEOUT"
  done
  signal_host CONT "$frozen"
  expect_all_good
  nothing_left_soon
}

# Strangers at every port that listens: silent, chatty, with bytes of no meaning, and gone again.
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
ports_of_n1() { on n1 ss -Htln | awk '{sub(/.*:/, "", $4); print $4}' | sort -u; }
