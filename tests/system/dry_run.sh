#!/bin/bash
# --dry-run, --display map and --print-env say what a job would be; the first and the last start nothing.
. "$(dirname "$0")/lib.sh"

for option in --dry-run --print-env; do
  expect_exit 0 "$COLRUN" -n 3 "$option" -x MINE=1 touch "$work/started"
  [ ! -s "$err" ] || fail "something on stderr"
  [ ! -e "$work/started" ] || fail "$option started a rank"
  nothing_left
done
for rank in 0 1 2; do
  for expected in COL_RANK=$rank COL_WORLD_SIZE=3 LOCAL_RANK=$rank MINE=1; do expect_in "$out" "^\[$rank\] $expected\$"; done
done
cpu=$(allowed_cpus | head -n 1)
expect_exit 0 "$COLRUN" --dry-run --output "file=$work/%r.%s" --bind-to "list:$cpu" -n 1 touch 'a b' : -n 2 cat
expect_in "$out" "^node 0 \($(hostname)\): 3 ranks\$"
expect_in "$out" "^0 +touch 'a b' +$cpu +$work/0.(out|\{out,err\}|%s)"
expect_in "$out" "^2 +cat "
[ -z "$(ls "$work" | grep -E '^[0-9]')" ] || fail "--dry-run made files"
# What is wrong is found here, too.
expect_exit 127 "$COLRUN" --dry-run -n 1 no-such-program
expect_exit 2 "$COLRUN" --dry-run -n 0 true
expect_exit 0 "$COLRUN" --display map -n 2 echo text
expect_in "$err" '^node 0 '
printf 'text\ntext\n' | cmp - "$out" || fail "--display map gets into the ranks' output"
nothing_left
