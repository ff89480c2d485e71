#!/usr/bin/env bash
# The checker is checked: each planted bug is caught, and the control is not.
. "$(dirname "$0")/lib.sh"

expect 0 "$COLCHECK" --self-test
cat "$out"
nothing_left
