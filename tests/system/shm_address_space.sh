#!/bin/bash
# Too little address space for the shared memory (ulimit -v): one `resource` error that says so, no crash, no hang.
. "$(dirname "$0")/lib.sh"

# The least limit in KiB with which the program can be loaded.
loads() { bash -c 'ulimit -c 0 -v "$1" && exec "$0" --help' "$DIGITS_TRAINER" "$1"; } >"$out" 2>"$err"
least=1024
works=$((1 << 21))
loads $works || fail "no start with $works KiB"
while [ $((works - least)) -gt 64 ]; do
  middle=$(((works + least) / 2))
  if loads $middle 2>/dev/null; then
    works=$middle
  else
    least=$middle
  fi
done

# A group of four takes 5 MiB or more.
for more in 1024 2048 4096; do
  expect_exit 1 "$COLRUN" -n 4 bash -c 'ulimit -v "$1" && exec "$0" --no-save --epochs 1' \
    "$DIGITS_TRAINER" $((works + more))
  message='resource: .*shm: no room for the [0-9]+ KiB .*address space.*; free memory, or raise the limit'
  [ "$(grep -cE "^digits_trainer: $message" "$err")" -eq 4 ] || fail "not every rank says '$message'"
  [ "$(grep -cE "^colrun: rank [0-3] said $message" "$err")" -eq 1 ] || fail "not one error of the job"
  nothing_left
done
