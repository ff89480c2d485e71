#!/bin/bash
# Shared memory is not locked: a limit of 0 on locked memory (ulimit -l) is none.
. "$(dirname "$0")/lib.sh"

# Root may lock all it likes unless the capability is taken away.
unprivileged=()
[ "$(id -u)" != 0 ] || unprivileged=(setpriv --bounding-set -ipc_lock)
[ "$(id -u)" != 0 ] || "${unprivileged[@]}" true || { echo "setpriv does not work here"; exit 77; }
expect_exit 0 "$COLRUN" -n 4 "${unprivileged[@]}" bash -c '
  ulimit -l 0 && [ "$(ulimit -l)" = 0 ] || exit 9
  exec "$0" --no-save --epochs 1' "$DIGITS_TRAINER"
expect_in "$out" '4 ranks over shm'
nothing_left
