#!/bin/bash
# Ranks get the user's descriptors and none of colrun's but the one that PMI_FD names.
. "$(dirname "$0")/lib.sh"

echo passed >"$work/data"
list='ls /proc/self/fd | grep -vx "${PMI_FD-none}" | sort -n | paste -sd,'
# Without colrun: descriptor 7, and what whoever runs the tests left open.
plain=$(sh -c "$list" 7<"$work/data")
expect_exit 0 "$COLRUN" -n 2 sh -c "cat <&7; $list" 7<"$work/data"
expect_in "$out" '^passed$'
[ "$(grep -cx "$plain" "$out")" -eq 2 ] || fail "other descriptors than $plain"
expect_exit 0 "$COLRUN" -n 1 cat <(echo substituted)
expect_in "$out" '^substituted$'
nothing_left
