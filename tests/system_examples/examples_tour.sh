#!/usr/bin/env bash
# The calls besides allreduce, as a user would make them, on an even and an odd number of ranks.
. "$(dirname "$0")/lib.sh"

for ranks in 4 5; do
  half=$(((ranks + 1) / 2))
  timeout --kill-after=5 60 "$COLRUN" -n "$ranks" "$TOUR" >out
  grep -qE "^$ranks ranks over (shm|gloo): sum $ranks, average 2, 15 epochs, halves of $half, $((ranks - 1)) greetings\$" out ||
    fail "$ranks ranks: $(cat out)"
  grep -qE '^[a-z_]+(:[a-z]+=[0-9A-Z]+)?: rule [0-9]+ of built in: allreduce' out || fail "explain() does not name an algorithm: $(cat out)"
done
