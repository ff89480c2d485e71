#!/bin/bash
# What goes wrong while ranks of several hosts find one another, without a launcher that knows better: each is one line that says
# who is missing. And what is no fault: clocks that differ, few descriptors.
. "$(dirname "$0")/wire_lib.sh"
make_hosts 2
export COL_BACKEND=gloo

# some_ranks SIZE PER_HOST RANKS COMMAND…: only these ranks of a world of SIZE, which meet at rank 0. In $pids by rank.
some_ranks() {
  local size=$1 per_host=$2 ranks=$3 rank host
  shift 3
  pids=()
  worlds=$((worlds + 1))
  for rank in $ranks; do
    host=$((rank / per_host))
    start_on n$((host + 1)) env RANK="$rank" WORLD_SIZE="$size" LOCAL_RANK=$((rank % per_host)) LOCAL_WORLD_SIZE="$per_host" \
      GROUP_RANK="$host" GROUP_WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=29500 TORCHELASTIC_RUN_ID="$worlds" \
      TORCHELASTIC_RESTART_COUNT=0 COL_RDZV_ENDPOINT=n1:29401 COL_JOB_ID=wire.$worlds "$@" \
      >"$work/rank.$rank" 2>"$work/n$rank.err"
    pids[rank]=$started
  done
}
# expect_words RANKS CODE PATTERN: what these ranks say, in one line.
expect_words() {
  local rank
  for rank in $1; do
    wait_until 30 "rank $rank to end" gone "${pids[rank]}"
    [ "$(wc -l <"$work/rank.$rank")" -eq 1 ] || fail "not one line from rank $rank: $(cat "$work/rank.$rank")"
    expect_in "$work/rank.$rank" "^$2 .*$3"
  done
}

# A tenth of the ranks never comes, all of one end: they are named together. The others begin together.
gather "$work/begin" 12
COL_TIMEOUT=4s some_ranks 16 8 "$(seq -s ' ' 0 11)" bash -c 'meet "$0" && exec "$@"' "$work/begin" "$WIRE_JOB" 8 "$work/never"
expect_words "$(seq -s ' ' 0 11)" timeout "ranks 12-15 to join group 'default'"
nothing_left

# The process with the store dies while the others wait for a rank that has not come.
some_ranks 4 2 "0 1 2" "$WIRE_JOB" 8 "$work/store"
wait_until 20 "rank 2 to come" eval '[ "$(in_network_of n1 ss -Htn state established "( sport = :29401 )" | wc -l)" -ge 2 ]'
host_processes() { pgrep -f "^$WIRE_JOB 8 $work/store" --ns "$(host_pid n1)" --nslist pid; }
for pid in $(host_processes); do
  ! tr '\0' '\n' <"/proc/$pid/environ" | grep -qx RANK=0 || kill -KILL "$pid"
done
wait "${pids[0]}" 2>/dev/null
expect_words "1 2" "(io|peer_lost)" "(the store at tcp://n1:29401 has gone|rank 0 .*died)"
nothing_left_soon

# Clocks that differ by minutes, and by hours since the start of the host, are no fault.
cat >"$work/late.c" <<'C'
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
enum { kLate = 420 };
int clock_gettime(clockid_t id, struct timespec* now) {
  int failed = (int)syscall(SYS_clock_gettime, id, now);
  if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec -= kLate;
  return failed;
}
time_t time(time_t* place) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (place) *place = now.tv_sec;
  return now.tv_sec;
}
int gettimeofday(struct timeval* now, void* zone) {
  struct timespec exact;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}
C
if ${CC:-cc} -shared -fPIC -o "$work/late.so" "$work/late.c" 2>"$err"; then
  cat >"$work/other_clocks" <<'SCRIPT'
#!/bin/bash
[ "$(hostname)" != n1 ] || exec "$@"
LD_PRELOAD=${0%/*}/late.so exec unshare --time --monotonic 7200 --boottime 7200 --fork --kill-child "$@"
SCRIPT
  chmod +x "$work/other_clocks"
  if on n2 "$work/other_clocks" true 2>"$err"; then
    start_ranks 2 "$work/other_clocks" timeout -k 1 40 "$HELLO"
    expect_all_good
    for rank in 0 1 2 3; do expect_in "$work/rank.$rank" "rank $rank of 4: the sum is 10"; done
    nothing_left
  else
    echo "not tested: clocks that differ: $(cat "$err")"
  fi
else
  echo "not tested: clocks that differ: $(cat "$err")"
fi

# 256 descriptors are enough for 32 ranks, two-level calls and rank 0 that serves them all.
start_ranks 16 bash -c 'ulimit -n 256; exec timeout -k 1 60 "$0"' "$HELLO"
expect_all_good
expect_in "$work/rank.31" 'rank 31 of 32: the sum is 528'
nothing_left
