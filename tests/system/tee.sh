#!/bin/bash
# --tee: files and console both get everything; a console that goes away does not end the job.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 3 --output "file=$work/%r.%s" --tee -l sh -c 'echo out; echo err >&2'
sort "$out" | cmp - <(printf '[0] out\n[1] out\n[2] out\n') || fail "stdout"
sort "$err" | cmp - <(printf '[0] err\n[1] err\n[2] err\n') || fail "stderr"
for rank in 0 1 2; do
  printf '[%d] out\n' $rank | cmp - "$work/$rank.out" || fail "file of stdout"
  printf '[%d] err\n' $rank | cmp - "$work/$rank.err" || fail "file of stderr"
done
"$COLRUN" -n 2 --output "file=$work/%r.all" --tee sh -c 'for i in $(seq 20000); do echo line $i; done' 2>"$err" | head -1 >"$out"
codes=("${PIPESTATUS[@]}")
[ "${codes[0]}" -eq 0 ] || fail "code ${codes[0]} when the console's reader is gone"
for rank in 0 1; do expect_lines "$work/$rank.all" 20000; done
expect_exit 2 "$COLRUN" -n 2 --tee true
expect_in "$err" '^colrun: --tee needs --output'
nothing_left
