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

# epochs_of FILE: epoch, loss and accuracy of each epoch that the trainer printed.
epochs_of() { awk '$1 == "epoch" {print $2, $4, $7}' "$1"; }

# near FILE FILE TOLERANCE: the losses of two outputs of epochs_of() differ by no more than this, relative.
near() {
  paste -d ' ' "$1" "$2" | awk -v most="$3" '
    {difference = ($2 - $5) / $2; if (difference < 0) difference = -difference}
    NF != 6 || $1 != $4 || !($2 > 0) || !(difference <= most) {bad = 1}
    difference > worst {worst = difference}
    END {printf "largest relative difference %.1e\n", worst; exit bad || NR == 0}'
}
