#!/bin/bash
# NUL and bytes that are no UTF-8 pass unchanged, in lines of any length.
. "$(dirname "$0")/lib.sh"

head -c 3000000 /dev/urandom >"$work/data"
tr -d '\n' <"$work/data" >"$work/one_line"
for data in data one_line; do
  expect_exit 0 "$COLRUN" -n 1 cat "$work/$data"
  cmp "$out" "$work/$data" || fail "the bytes of $data changed"
done
printf 'a\0b\377\376\n' >"$work/odd"
expect_exit 0 "$COLRUN" -n 4 cat "$work/odd"
cat "$work/odd" "$work/odd" "$work/odd" "$work/odd" | cmp - "$out" || fail "odd bytes changed"
nothing_left
