#!/bin/bash
# --max-restarts: all ranks again, with nothing of the attempt before: its processes, its store, its control page, its port.
. "$(dirname "$0")/lib.sh"

job='
  store=${COL_STORE#file://}
  echo "$RANK $COL_RESTART_COUNT $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS $(ls "$store" | wc -l) $COL_JOB_ID" >>"$0/log.$RANK"
  stat -c %i "$COL_CONTROL" >>"$0/pages"
  [ -e "$COL_ERROR_FILE" ] && echo "rank $RANK has an old error file" >>"$0/wrong"
  # Nothing of an earlier attempt is alive.
  for pid in $(cat "$0/helpers" 2>/dev/null); do kill -0 "$pid" 2>/dev/null && [ ! -e "$0/of.$COL_RESTART_COUNT.$pid" ] && echo "$pid lives" >>"$0/wrong"; done
  : >"$0/seen.$COL_RESTART_COUNT.$RANK"
  await test -e "$0/seen.$COL_RESTART_COUNT.0" -a -e "$0/seen.$COL_RESTART_COUNT.1" -a -e "$0/seen.$COL_RESTART_COUNT.2"
  setsid sleep 300 >/dev/null 2>&1 </dev/null &
  : >"$0/of.$COL_RESTART_COUNT.$!"
  echo $! >>"$0/helpers"
  : >"$store/stale.$RANK"
  [ $COL_RESTART_COUNT = 2 ] && exit 0
  [ $RANK = 1 ] || exec sleep 60
  echo "{\"code\":\"mismatch\",\"message\":\"attempt $COL_RESTART_COUNT\"}" >"$COL_ERROR_FILE"
  exit 4'
expect_exit 0 "$COLRUN" -n 3 --max-restarts 2 bash -c "$job" "$work"
[ ! -e "$work/wrong" ] || fail "$(cat "$work/wrong")"
for rank in 0 1 2; do
  cut -d' ' -f1-5 "$work/log.$rank" | cmp - <(for count in 0 1 2; do echo "$rank $count $count 2 0"; done) || fail "not three attempts with an empty store each: $(cat "$work/log.$rank")"
done
expect_in "$err" '^colrun: rank 1 .*exited with code 4'
expect_in "$err" '^colrun: rank 1 said mismatch: attempt 0$'
expect_in "$err" '^colrun: restarting all ranks \(1 of 2 restarts\)$'
expect_in "$err" '^colrun: restarting all ranks \(2 of 2 restarts\)$'
# shellcheck disable=SC2046
all_gone $(cat "$work/helpers") || fail "a grandchild outlived colrun"
nothing_left

# The last attempt's code counts; a time limit or a signal ends the job for good.
: >"$work/attempts"
expect_exit 6 "$COLRUN" -n 1 --max-restarts 2 sh -c 'echo x >>"$0/attempts"; exit $((4 + COL_RESTART_COUNT))' "$work"
expect_lines "$work/attempts" 3
: >"$work/attempts"
for time in 300ms 3s 20s; do  # until the rank has begun in that time
  expect_exit 124 "$COLRUN" -n 1 --max-restarts 5 --timeout $time sh -c 'echo x >>"$0/attempts"; exec sleep 60' "$work"
  [ ! -s "$work/attempts" ] || break
done
expect_lines "$work/attempts" 1
: >"$work/attempts"
"$COLRUN" -n 1 --max-restarts 5 bash -c 'trap "exit 3" TERM; echo x >>"$0/attempts"; await false' "$work" 2>"$err" &
pid=$!
wait_until 10 "the rank" test -s "$work/attempts"
kill -TERM $pid
expect_status 143 $pid
expect_lines "$work/attempts" 1
# The time limit is of all attempts together.
expect_exit 124 "$COLRUN" -n 1 --max-restarts 1000000 --timeout 500ms sh -c 'exit 4'
# Labels and input go on.
expect_exit 0 "$COLRUN" -n 1 -l --max-restarts 1 sh -c 'read -r line; echo "$COL_RESTART_COUNT $line"; exit $((1 - COL_RESTART_COUNT))' < <(printf 'first\nsecond\n')
printf '[0] 0 first\n[0] 1 second\n' | cmp - "$out" || fail "input or labels of a restarted job"
nothing_left
