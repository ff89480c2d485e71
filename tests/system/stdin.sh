#!/bin/bash
# Rank 0 gets all of stdin; the others see its end at once.
. "$(dirname "$0")/lib.sh"

head -c 20000000 /dev/urandom >"$work/data"
expect_exit 0 "$COLRUN" -n 3 sh -c 'echo "$RANK $(sha256sum)"' < <(cat "$work/data")
expect_in "$out" "^0 $(sha256sum <"$work/data")\$"
empty=$(sha256sum </dev/null)
expect_in "$out" "^1 $empty\$"
expect_in "$out" "^2 $empty\$"
# Lines neither come twice nor get lost, however they are read.
expect_exit 0 "$COLRUN" -n 2 sh -c 'wc -l' < <(seq 300000)
sort -n "$out" | cmp - <(printf '0\n300000\n') || fail "not each line once"
# A writer notices when rank 0 is gone, though the job goes on.
mkfifo "$work/go"
(yes >&9; : >"$work/writer_ended") 9> >(exec "$COLRUN" -n 2 sh -c 'if [ $RANK = 0 ]; then read -r line; else read -r line <"$0/go"; fi' "$work" >"$out" 2>"$err") 2>/dev/null &
wait_until 10 "the writer noticed" test -e "$work/writer_ended"
echo go >"$work/go"
nothing_left_soon
