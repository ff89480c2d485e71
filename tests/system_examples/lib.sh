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

# install_moved FOLDER: what is installed, as if it had been moved to FOLDER afterwards. Nothing there may know of another place.
install_moved() {
  local pc prefix
  meson install -C "$BUILD_DIR" --destdir "$work/stage" --no-rebuild --quiet >install.log 2>&1 || fail "$(cat install.log)"
  pc=$(find stage -name col.pc)
  [ -f "$pc" ] || fail "expected one col.pc, found: $pc"
  prefix=$(realpath "$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --variable=prefix col)")
  case $prefix in "$work"/stage/*) ;; *) fail "col.pc names a folder of the build: $prefix" ;; esac
  [ -x "$prefix/bin/colrun" ] || fail "no colrun in $prefix/bin: $(ls "$prefix" "$prefix/bin")"
  mkdir -p "$(dirname "$1")"
  mv "$prefix" "$1"
  rm -rf stage
  libdir=$(dirname "$(find "$1" -name libcol.so)")
}

# says_sum RANKS COMMAND…: these ranks of hello say the right sum.
says_sum() {
  local ranks=$1 rank
  shift
  timeout --kill-after=5 60 "$@" | sort >out
  for ((rank = 0; rank < ranks; ++rank)); do echo "rank $rank of $ranks: the sum is $((ranks * (ranks + 1) / 2))"; done |
    diff out - || fail "$* says something else (above)"
}
