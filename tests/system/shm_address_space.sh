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

works=$((works + 512)) # for the job's control page, which comes first

# How much a group of four takes depends on the processor's caches: the first of these says it, in KiB.
size=0
for quarters in 0 1 2 3; do
  # Every rank has time to say it, also when colrun ends them because of the first.
  expect_exit 1 "$COLRUN" -n 4 --grace 60s bash -c 'trap "" TERM; ulimit -v "$1" && exec "$0" --no-save --epochs 1' \
    "$DIGITS_TRAINER" $((works + size * quarters / 4))
  message='resource: .*shm: no room for the [0-9]+ KiB .*address space.*; free memory, or raise the limit'
  [ "$(grep -cE "^digits_trainer: $message" "$err")" -eq 4 ] || fail "not every rank says '$message'"
  [ "$(grep -cE "^colrun: rank [0-3] said $message" "$err")" -eq 1 ] || fail "not one error of the job"
  size=$(sed -nE 's/^digits_trainer: .* no room for the ([0-9]+) KiB .*/\1/p' "$err" | head -n 1)
  nothing_left
done
[ "$size" -gt 1024 ] || fail "a group of four takes only $size KiB"
