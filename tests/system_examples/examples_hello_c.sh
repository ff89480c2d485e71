#!/usr/bin/env bash
# The program in C says on every rank what docs/c.md says it does, and a wrong environment is an error in words.
. "$(dirname "$0")/lib.sh"

for n in 1 2 3; do
  timeout --kill-after=5 60 "$COLRUN" -n $n "$HELLO_C" | sort >out
  for ((r = 0; r < n; ++r)); do echo "rank $r of $n: the sum is $((n * (n + 1) / 2))"; done | diff out - ||
    fail "under colrun -n $n (above: < got, > expected)"
done
[ "$("$HELLO_C")" = "rank 0 of 1: the sum is 1" ] || fail "alone: $("$HELLO_C")"

code=0
COL_RANK=9 COL_WORLD_SIZE=4 "$HELLO_C" 2>err || code=$?
[ $code = 1 ] || fail "exit code $code"
grep -q '^hello_c: invalid_argument: COL_RANK=9 is not below COL_WORLD_SIZE=4' err || fail "it says: $(cat err)"
