#!/bin/bash
# A machine without memory for the group: `resource` from every rank, before the kernel has to kill one of them.
. "$(dirname "$0")/lib.sh"

# What the kernel tells of the machine's memory is the test's own file, in a mount namespace of the job.
on_machine() { # KIB_AVAILABLE COMMAND…
  printf 'MemTotal: 99999999 kB\nMemAvailable: %s kB\nSwapFree: 0 kB\n' "$1" >"$work/meminfo"
  shift
  unshare -rm bash -c 'mount --bind "$0" /proc/meminfo || exit 77; exec "$@"' "$work/meminfo" "$@"
}
on_machine 1 true 2>"$err" || { echo "no mount namespace here: $(cat "$err")"; exit 77; }

export -f on_machine
export work
expect_exit 0 bash -c 'on_machine 1000000 "$@"' - "$COLRUN" -n 4 "$DIGITS_TRAINER" --no-save --epochs 1
expect_in "$out" '4 ranks over shm'
# Every rank has time to say it, also when colrun ends them because of the first.
expect_exit 1 bash -c 'on_machine 3000 "$@"' - "$COLRUN" -n 4 --grace 60s \
  sh -c 'trap "" TERM; exec "$0" "$@"' "$DIGITS_TRAINER" --no-save --epochs 1
message='resource: .*shm: no room for the [0-9]+ KiB .*\(3000 KiB are left on this machine\); free memory, or raise'
[ "$(grep -cE "^digits_trainer: $message" "$err")" -eq 4 ] || fail "not every rank says '$message'"
nothing_left
