#!/bin/bash
# --output file=PATTERN: a file for each stream of each rank, new at every run.
. "$(dirname "$0")/lib.sh"

to="file=$work/run/%j/%h/%R.%s"
expect_exit 0 "$COLRUN" -q -n 11 --output "file=$work/run/%w/%R.%s" sh -c 'echo long text of $RANK; echo more; echo error $RANK >&2'
[ ! -s "$out" ] && [ ! -s "$err" ] || fail "something on the console"
[ "$(ls "$work/run/11" | wc -l)" -eq 22 ] || fail "$(ls "$work/run/11" | wc -l) files instead of 22"
for rank in 00 01 02 03 04 05 06 07 08 09 10; do
  printf 'long text of %d\nmore\n' "$((10#$rank))" | cmp - "$work/run/11/$rank.out" || fail "stdout of $rank"
  printf 'error %d\n' "$((10#$rank))" | cmp - "$work/run/11/$rank.err" || fail "stderr of $rank"
done
# Less output leaves no stale tail.
expect_exit 0 "$COLRUN" -n 11 --output "file=$work/run/%w/%R.%s" sh -c 'echo x'
for rank in 00 05 10; do
  printf 'x\n' | cmp - "$work/run/11/$rank.out" || fail "what was there before is still there"
  [ ! -s "$work/run/11/$rank.err" ] || fail "stderr of the run before is still there"
done

expect_exit 0 "$COLRUN" -n 2 --output "$to" sh -c 'echo $COL_JOB_ID >"$0/job"; printf "a\0b no end"' "$work"
file="$work/run/$(cat "$work/job")/$(hostname)/1.out"
printf 'a\0b no end' | cmp - "$file" || fail "bytes are not as they were"
# Labels in files, and one file for both streams: their lines stay whole.
expect_exit 0 "$COLRUN" -n 2 -l --output "file=$work/both.%r" sh -c 'for i in 1 2 3; do echo out $i; echo err $i >&2; done'
[ "$(sort "$work/both.1" | uniq -c | awk '{ print $1, $2, $3, $4 }' | paste -sd,)" = \
  '1 [1] err 1,1 [1] err 2,1 [1] err 3,1 [1] out 1,1 [1] out 2,1 [1] out 3' ] || fail "two streams in one file"

# Restarts go on where the files were, and a failing rank's last words are shown though they went to a file.
expect_exit 4 "$COLRUN" -n 1 --max-restarts 1 --output "file=$work/again.%r.%s" sh -c 'echo attempt $COL_RESTART_COUNT; echo went wrong >&2; exit 4'
printf 'attempt 0\nattempt 1\n' | cmp - "$work/again.0.out" || fail "the file of a restarted rank"
expect_in "$err" '^colrun:   went wrong$'

# Directories are made, which is said once, unless -q.
expect_exit 0 "$COLRUN" -n 2 --output "file=$work/new/of/%r" true
expect_in "$err" "^colrun: made the folder '$work/new' for --output$"
expect_lines "$err" 1
expect_exit 0 "$COLRUN" -n 2 --output "file=$work/new/of/%r" true
[ ! -s "$err" ] || fail "said though it was there"
expect_exit 0 "$COLRUN" -q -n 2 --output "file=$work/newer/%r" true
[ ! -s "$err" ] || fail "said in spite of -q"
[ -e "$work/newer/1" ] || fail "no file"

# What cannot be: said before anything runs.
for pattern in "file=$work/one" 'file=' 'run/%r' "file=$work/%q%r" "dir=$work"; do
  expect_exit 2 "$COLRUN" -n 2 --output "$pattern" touch "$work/started"
  expect_lines "$err" 1
done
touch "$work/plain"
expect_exit 125 "$COLRUN" -n 2 --output "file=$work/plain/%r" touch "$work/started"
expect_lines "$err" 1
expect_in "$err" "plain/0.*Not a directory"
[ ! -e "$work/started" ] || fail "started though the output has nowhere to go"
# A disk that is full ends the job.
expect_exit 125 "$COLRUN" -n 1 -l --output 'file=/dev/full' --timeout 20 echo text
nothing_left
