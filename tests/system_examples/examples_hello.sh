#!/usr/bin/env bash
# The ten-line program says on every rank what the README says it does.
. "$(dirname "$0")/lib.sh"

[ "$("$HELLO")" = "rank 0 of 1: the sum is 1" ] || fail "alone: $("$HELLO")"
timeout --kill-after=5 60 "$COLRUN" -n 4 "$HELLO" | sort >out
printf 'rank %d of 4: the sum is 10\n' 0 1 2 3 | diff out - || fail "under colrun (above: < got, > expected)"
