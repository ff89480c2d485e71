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
    sleep 0.01
  done
}

# expect_exit CODE COMMAND…: runs it with stdout in $out and stderr in $err; fails the test when it hangs.
expect_exit() {
  local expected=$1 code
  shift
  timeout -k 1 30 "$@" >"$out" 2>"$err"
  code=$?
  [ "$code" -eq "$expected" ] || fail "exit code $code instead of $expected from: $*"
}

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
# expect_faster MILLISECONDS COMMAND…
expect_faster() {
  local limit=$1 start
  shift
  start=$(date +%s%N)
  "$@"
  local took=$((($(date +%s%N) - start) / 1000000))
  [ "$took" -lt "$limit" ] || fail "took $took ms, $limit allowed: $*"
}

# expect_soon MILLISECONDS COMMAND…: one of five runs is as fast as that; a machine under load is not, now and then. Where
# everything is slower, as under a sanitizer, COLTEST_SLACK times that long.
expect_soon() {
  local limit=$(($1 * ${COLTEST_SLACK:-1})) try start took
  shift
  for try in 1 2 3 4 5; do
    start=$(date +%s%N)
    "$@"
    took=$((($(date +%s%N) - start) / 1000000))
    [ "$took" -lt "$limit" ] && return
  done
  fail "took $took ms at the last of $try runs, $limit allowed: $*"
}

no_process() { [ -z "$(job_processes)" ]; }
no_file() { [ -z "$(ls -A "$TMPDIR")" ]; }
files() { [ "$(ls "$1" 2>/dev/null | wc -l)" -ge "$2" ]; }
gone() { ! kill -0 "$1" 2>/dev/null; }
all_gone() {
  local pid
  for pid in "$@"; do gone "$pid" || return 1; done
}

# Nothing of the job is left. After colrun has ended this holds at once; after colrun was killed, shortly.
nothing_left() {
  no_process || fail "processes left: $(job_processes)"
  no_file || fail "files left: $(find "$TMPDIR")"
  no_shared_memory || fail "shared memory left: $(ls /dev/shm)"
}
nothing_left_soon() {
  wait_until 10 "processes left" no_process
  wait_until 10 "files left" no_file
  nothing_left
}
no_shared_memory() { ! compgen -G "/dev/shm/col*" >/dev/null; }

# The watcher of the colrun with that pid.
watcher_of() { pgrep -P "$1" -x col-watcher; }
