# shellcheck shell=bash
# What the scripts of this folder share. Sourced, not run; a script runs in an empty directory that is removed at its end.

set -euo pipefail

: "${COLRUN:?}" "${DIGITS_TRAINER:?}" "${HELLO:?}" "${HELLO_C:?}" "${TOUR:?}" "${BUILD_DIR:?}" "${SOURCE_DIR:?}"

work=$(mktemp -d "${TMPDIR:-/tmp}/col-examples-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  printf 'FAILED: %s\n' "$*"
  exit 1
}

# trainer RANKS ARGUMENT…: the trainer under colrun; no test waits longer than its limit.
trainer() {
  local ranks=$1
  shift
  timeout --kill-after=5 60 "$COLRUN" -n "$ranks" "$DIGITS_TRAINER" "$@"
}
