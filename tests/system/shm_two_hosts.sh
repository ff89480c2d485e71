#!/bin/bash
# A group that spans hosts: over shared memory every rank gets one clear error; left to choose, the ranks take another way,
# and colcheck leaves shared memory out.
. "$(dirname "$0")/lib.sh"

# Rank 1 has booted at another time than rank 0, so to say.
echo another-boot >"$work/boot_id"
export ANOTHER_BOOT=$work/boot_id
far='[ "$COL_RANK" = 1 ] || exec "$@"
  exec unshare -rm bash -c '\''mount --bind "$ANOTHER_BOOT" /proc/sys/kernel/random/boot_id && exec "$@"'\'' - "$@"'
COL_RANK=1 bash -c "$far" - true 2>"$err" || { echo "no mount namespace here: $(cat "$err")"; exit 77; }

expect_exit 77 "$COLRUN" -n 2 bash -c "$far" - "$COLCHECK" --only exact --backend shm --seed 1
message='needs all ranks on one machine, but rank 1 is on another machine .*; choose backend gloo'
expect_in "$out" "^\\[1\\] shm: unavailable: .*$message"
expect_in "$out" '^0 cases passed, 0 failed, 0 skipped, all of shm skipped'
nothing_left
expect_exit 2 "$COLRUN" -n 2 bash -c "$far" - "$COLCHECK" --only exact --require shm --seed 1
expect_in "$err" "^colcheck: 'shm' is required, and cannot be used here: unavailable: .*$message"
nothing_left

if [ -n "${HAVE_GLOO:-}" ]; then
  expect_exit 0 "$COLRUN" -n 2 bash -c "$far" - "$DIGITS_TRAINER" --no-save --epochs 1
  expect_in "$out" '2 ranks over gloo'
  nothing_left
  expect_exit 0 "$COLRUN" -n 2 bash -c "$far" - "$COLCHECK" --only in_place
  expect_in "$out" "^\\[1\\] shm: unavailable: .*$message"
  expect_in "$out" ' 0 failed, 0 skipped, all of shm skipped'
  nothing_left
fi
