#!/bin/bash
# 200 jobs in a row, every tenth killed by SIGKILL at a random moment: no hang, nothing left.
. "$(dirname "$0")/lib.sh"

seed=${COLTEST_SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
echo "seed $seed (set COLTEST_SEED to repeat)"
RANDOM=$seed
for job in $(seq 200); do
  if [ $((job % 10)) -ne 0 ]; then
    timeout -k 1 20 "$COLRUN" -n 4 true 2>"$err" || fail "job $job: code $?"
    no_file || fail "job $job left files: $(find "$TMPDIR")"
    continue
  fi
  "$COLRUN" -n 4 sh -c 'setsid sleep 300 & exec sleep 301' >/dev/null 2>"$err" &
  pid=$!
  # The random moment is what is tested: before, while and after the ranks start.
  sleep "$(printf '0.%03d' $((RANDOM % 60)))"
  kill -KILL $pid
  wait $pid 2>/dev/null
  nothing_left_soon
done
nothing_left
