# shellcheck shell=bash
# What the system tests share. Each test sources it first:  . "$(dirname "$0")/lib.sh"
#
# $COLRUN is the program under test. TMPDIR is a directory of the test's own, so what a job leaves behind is seen. Every
# process of the test carries COLTEST_TAG in its environment, so what a job leaves running is found, whatever it did to
# its session and parent. Times are deadlines for events that come much sooner; nothing waits for a time to pass.
#
# With OWN_PROCESSES=yes set before, the test sees no processes but its own, where the system allows that: a job that meets by
# a store is found in /proc, and the tests beside this one have such jobs.
set -uo pipefail
if [ "${OWN_PROCESSES:-}" = yes ] && unshare -rpfm --mount-proc true 2>/dev/null; then
  OWN_PROCESSES=made exec unshare -rpfm --kill-child --mount-proc bash "$0" "$@"
fi
: "${COLRUN:?set COLRUN to the colrun program}"
. "$(dirname "${BASH_SOURCE[0]}")/../support/again.sh"

work=$(mktemp -d "${TMPDIR:-/tmp}/coltest.XXXXXX")
out=$work/out
err=$work/err
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
export COLTEST_TAG=coltest.$$.$RANDOM
export OMP_NUM_THREADS=1  # so that colrun has nothing to say about it
# Nothing from a job that this test itself runs under.
unset COL_RANK COL_WORLD_SIZE COL_JOB_ID COL_STORE COL_CONTROL COL_ERROR_FILE RANK WORLD_SIZE LOCAL_RANK

# Pids of the test's processes. The shell that runs the test is none: it got its environment before. No pipe here: what
# stood behind it would carry the tag as well.
tagged() {
  local found
  found=$(env -u COLTEST_TAG grep -lsz "^COLTEST_TAG=$COLTEST_TAG\$" /proc/[0-9]*/environ)
  found=${found//\/environ/}
  echo "${found//\/proc\//}"
}
# Those of them that belong to a job: ranks and what they started, colrun, its watcher. Not the test's own helpers.
job_processes() {
  local pid
  for pid in $(tagged); do
    if env -u COLTEST_TAG grep -qsz '^COL_JOB_ID=' "/proc/$pid/environ" ||
      env -u COLTEST_TAG grep -qsxE 'colrun|col-watcher' "/proc/$pid/comm"; then
      echo "$pid"
    fi
  done
}

finish() {
  local code=$?
  local pid
  for pid in $(tagged); do kill -9 "$pid" 2>/dev/null; done
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT

fail() {
  echo "FAILED: $*" >&2
  if [ -s "$out" ]; then echo "--- stdout (its end)" >&2; tail -n 20 "$out" >&2; fi
  if [ -s "$err" ]; then echo "--- stderr (its end)" >&2; tail -n 20 "$err" >&2; fi
  exit 1
}

# wait_until SECONDS WHAT COMMAND…: until the command succeeds.
wait_until() {
  local seconds=$1 what=$2 end
  shift 2
  end=$((SECONDS + seconds))
  until "$@"; do
    [ "$SECONDS" -le "$end" ] || fail "$what: not within $seconds s"
    look_again
  done
}
look_again() { sleep 0.01; }

# Ranks that bash runs have these as well, and so has a program that write_program has written.
# await COMMAND…: until it succeeds; the limit is that of the job.
await() { until "$@"; do look_again; done; }
# say_pid FILE: the shell's pid is in the file, whole at once.
say_pid() { echo $$ >"$1.new" && mv "$1.new" "$1"; }
# ended FILE: the process that has said its pid there has ended, and its launcher knows that.
ended() { [ -s "$1" ] && gone "$(<"$1")"; }
# files DIRECTORY NUMBER: as many are there, or more.
files() { [ "$(ls "$1" 2>/dev/null | wc -l)" -ge "$2" ]; }
gone() { ! kill -0 "$1" 2>/dev/null; }
# stands FILE: the process that has said its pid there is stopped.
stands() { [ -s "$1" ] && grep -qs '^State:.T' "/proc/$(<"$1")/status"; }
# meet PLACE: until as many are there as gather() waits for. Who waits needs no process beside its own.
meet() { { : >"$1/$HOSTNAME.$$" && read -r _ <&9; } 9<>"$1/go"; }
for_ranks=(look_again await say_pid ended files gone stands meet)
export -f "${for_ranks[@]}"
# write_program FILE: a program of bash, from stdin. Not every shell on the way to it leaves functions in the environment.
write_program() {
  { echo '#!/bin/bash' && declare -f "${for_ranks[@]}" && cat; } >"$1"
  chmod +x "$1"
}

# gather PLACE NUMBER: so many ranks meet there, none of which goes on before all have come.
gather() {
  rm -rf "$1"
  mkdir -m 777 "$1"
  mkfifo -m 666 "$1/go"
  (wait_until 30 "a meeting of $2 ranks" files "$1" $(($2 + 1)) && printf '\n%.0s' $(seq "$2") >"$1/go") &
}

# expect_exit CODE COMMAND…: runs it with stdout in $out and stderr in $err; fails the test when it hangs, whatever its code.
expect_exit() {
  local expected=$1 code began=$SECONDS
  shift
  timeout -k 1 "$hangs" "$@" >"$out" 2>"$err"
  code=$?
  [ $((SECONDS - began)) -lt "$hangs" ] || fail "had to be ended after $hangs s: $*"
  [ "$code" -eq "$expected" ] || fail "exit code $code instead of $expected from: $*"
}
hangs=30 # seconds, fewer than the programs of the ranks sleep

# expect_status CODE PID: the same for a background job.
expect_status() {
  local expected=$1 pid=$2 code
  wait "$pid"
  code=$?
  [ "$code" -eq "$expected" ] || fail "status $code instead of $expected"
}

expect_in() { grep -qE -- "$2" "$1" || fail "no line like '$2' in $(basename "$1")"; }
expect_not_in() { ! grep -qE -- "$2" "$1" || fail "a line like '$2' in $(basename "$1")"; }
expect_lines() { [ "$(wc -l <"$1")" -eq "$2" ] || fail "$(wc -l <"$1") lines instead of $2 in $(basename "$1")"; }
no_process() { [ -z "$(job_processes)" ]; }
no_file() { [ -z "$(ls -A "$TMPDIR")" ]; }
all_gone() {
  local pid
  for pid in "$@"; do gone "$pid" || return 1; done
}

# Nothing of the job is left. After colrun has ended this holds at once; after colrun was killed, shortly.
nothing_left() {
  no_process || fail "processes left: $(job_processes)"
  no_file || fail "files left: $(find "$TMPDIR")"
  no_shared_memory || fail "shared memory left: $(shared_memory_left)"
}
nothing_left_soon() {
  wait_until 10 "processes left" no_process
  wait_until 10 "files left" no_file
  nothing_left
}
# The names that shm gives where it cannot do without. Tests beside this one have others, which begin alike.
shared_memory_left() { find /dev/shm -maxdepth 1 -regextype posix-extended -regex '.*/col-[0-9a-f]{32}'; }
no_shared_memory() { [ -z "$(shared_memory_left)" ]; }

# The processors that this process may use, one a line, and those that are one core with one of them.
allowed_cpus() {
  local part
  for part in $(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status | tr , ' '); do seq "${part%-*}" "${part#*-}"; done
}
core_of() { cat "/sys/devices/system/cpu/cpu$1/topology/"{core_cpus,thread_siblings}_list 2>/dev/null | head -n 1; }
# A control group of this machine, perhaps ours, gets less time than there are processors.
has_cpu_quota() { grep -rqsE --include=cpu.max --include=cpu.cfs_quota_us '^[1-9]' /sys/fs/cgroup; }
# need_processes RANKS: skips the test where a control group has no room for so many.
need_processes() {
  timeout -k 1 "$hangs" "$COLRUN" -n "$1" true >"$out" 2>"$err" || ! grep 'raise its pids\.max' "$err" || exit 77
}

# The watcher of the colrun with that pid.
watcher_of() { pgrep -P "$1" -x col-watcher; }
