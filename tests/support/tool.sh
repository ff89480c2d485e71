# shellcheck shell=bash
# What the tests of colbench and colcheck share. TMPDIR is the test's own, so that what a run leaves behind is seen.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/again.sh"

work=$(mktemp -d "${TMPDIR:-/tmp}/coltest.XXXXXX")
out=$work/out
err=$work/err
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
export OMP_NUM_THREADS=1
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  echo "--- stdout (its end)" >&2
  tail -n 40 "$out" >&2
  echo "--- stderr (its end)" >&2
  tail -n 20 "$err" >&2
  exit 1
}

# expect CODE COMMAND…: runs it with a limit, keeps its output in $out and $err, and compares the exit code.
expect() {
  local wanted=$1 code
  shift
  timeout 300 "$@" >"$out" 2>"$err" </dev/null
  code=$?
  [ "$code" = "$wanted" ] || fail "'$*' returned $code, not $wanted"
}
says() { grep -qF -- "$1" "$out" || fail "stdout does not say '$1'"; }
complains() { grep -qF -- "$1" "$err" || fail "stderr does not say '$1'"; }
nothing_left() {
  local left
  left=$(find "$TMPDIR" -mindepth 1 -not -path "$TMPDIR/col-$(id -u)")
  [ -z "$left" ] || fail "left behind: $left"
}
