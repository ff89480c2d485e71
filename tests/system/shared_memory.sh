#!/bin/bash
# Memory that ranks share: right sums, nothing left behind, and a rank that is killed while others wait for it, or read
# from it, is named by all of them.
. "$(dirname "$0")/lib.sh"
: "${SHARED_MEMORY_JOB:?set SHARED_MEMORY_JOB to the shared_memory_job program}"
hangs=120 # its ranks work all the time, and what else runs here slows them down

# The names that the backend gives where it cannot do without; others on this machine may have theirs.
names() { find /dev/shm -maxdepth 1 -regextype posix-extended -regex '.*/col-[0-9a-f]{32}' | sort; }
names_before=$(names)
no_shared_memory() { [ -z "$(comm -13 <(echo "$names_before") <(names))" ]; }

for n in 2 3 4 8; do
  expect_exit 0 "$COLRUN" -n "$n" "$SHARED_MEMORY_JOB" sums
  [ "$(grep -c 'all as expected$' "$out")" -eq "$n" ] || fail "not all of $n ranks said that all is as expected"
  nothing_left
done
for n in 2 4; do
  expect_exit 0 "$COLRUN" -n "$n" "$SHARED_MEMORY_JOB" churn
  [ "$(grep -c 'nothing left$' "$out")" -eq "$n" ] || fail "not all of $n ranks said that nothing is left"
  nothing_left
done

for n in 2 3 4 8; do
  for call in alloc allreduce broadcast alltoall; do
    words=$work/words.$n.$call
    mkdir "$words"
    expect_exit 137 "$COLRUN" -n "$n" "$SHARED_MEMORY_JOB" killed "$call" "$words"
    for ((rank = 0; rank < n - 1; ++rank)); do
      [ "$(cat "$words/$rank" 2>/dev/null)" = "peer_lost $((n - 1))" ] ||
        fail "$n ranks, $call: rank $rank says '$(cat "$words/$rank" 2>/dev/null)' and not 'peer_lost $((n - 1))'"
    done
    nothing_left
  done
done
