#!/bin/bash
# Ranks that are stopped, continued and killed at random moments, while they make collectives over shared memory: every
# job ends in time with the right code, and leaves nothing behind.
#
#   disturbed_jobs.sh [--jobs N] [--seed N]
#
# $COLRUN and $MIXED_TRAINER are the programs, $STRESS_ALGORITHM (default: what is chosen) the algorithm of all calls.
. "$(dirname "$0")/../system/lib.sh"
: "${MIXED_TRAINER:?set MIXED_TRAINER to the mixed_trainer program}"

jobs=24
seed=${COLTEST_SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
while [ $# -gt 0 ]; do
  case $1 in
    --jobs) jobs=$2 ;;
    --seed) seed=$2 ;;
    *) fail "what is '$1'? usage: disturbed_jobs.sh [--jobs N] [--seed N]" ;;
  esac
  shift 2
done
echo "seed $seed (--seed or COLTEST_SEED repeats what is drawn; the moments differ)"
RANDOM=$seed

# Seconds that a job has from the last disturbance to its end.
limit=30
calls=150
sizes=(2 2 3 4 5)

pause_up_to() { sleep "$(printf '0.%03d' $((RANDOM % $1)))"; } # milliseconds: the random moment is what is tested
pid_of() { cat "$ranks/rank.$1" 2>/dev/null; }
has_begun() { [ -e "$ranks/rank.$1" ] || gone "$pid"; }

start() { # CALLS
  ranks=$work/ranks
  rm -rf "$ranks"
  mkdir "$ranks"
  timeout -k 1 $((limit + 60)) "$COLRUN" -n "$n" "$MIXED_TRAINER" $((RANDOM)) "$1" "$ranks" \
    ${STRESS_ALGORITHM:+"$STRESS_ALGORITHM"} >"$out" 2>"$err" &
  pid=$!
}

# Some ranks stop, for a while each; all go on in the end.
stop_and_continue() { # TIMES
  local time victim
  for time in $(seq "$1"); do
    victim=$(pid_of $((RANDOM % n)))
    [ -z "$victim" ] || kill -STOP "$victim" 2>/dev/null
    pause_up_to 40
    [ -z "$victim" ] || kill -CONT "$victim" 2>/dev/null
    [ $((time % 3)) -ne 0 ] || pause_up_to 20
  done
}

expect_end() { # CODE WHAT
  local started=$SECONDS code
  wait "$pid"
  code=$?
  [ "$code" -eq "$1" ] || fail "job $job ($n ranks, $2): code $code instead of $1"
  [ $((SECONDS - started)) -le $limit ] || fail "job $job ($n ranks, $2): took $((SECONDS - started)) s to end"
  nothing_left
}

killed=0
for job in $(seq "$jobs"); do
  n=${sizes[RANDOM % ${#sizes[@]}]}
  case $((job % 4)) in
    0)
      start $calls
      expect_end 0 undisturbed
      ;;
    1)
      start $calls
      stop_and_continue $((1 + RANDOM % 6))
      expect_end 0 "stopped and continued"
      ;;
    *) # Half of the jobs: a rank is killed, in every other one of them while another rank is stopped.
      start 0
      victim=$((RANDOM % n))
      wait_until 20 "rank $victim has begun" has_begun "$victim"
      pause_up_to 120
      stop_and_continue $((RANDOM % 3))
      [ $((job % 4)) -ne 3 ] || kill -STOP "$(pid_of $(((victim + 1) % n)))" 2>/dev/null
      kill -KILL "$(pid_of "$victim")" || fail "job $job: rank $victim ended before it was killed"
      killed=$((killed + 1))
      expect_end 137 "rank $victim was killed"
      expect_in "$err" "^colrun: rank $victim .* was killed by SIGKILL"
      ;;
  esac
done
nothing_left
echo "$jobs jobs, $killed of them killed, nothing left"
