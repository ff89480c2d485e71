#!/usr/bin/env bash
# Hangs that are drawn anew at each run: the sentence of coljob why is right about each. A run that fails shows its seed.
#
#   why.sh [OPTION…]    of colcheck
. "$(dirname "$0")/lib.sh"

expect 0 "$COLCHECK" --faults --only why "$@" ${COLTEST_SEED:+--seed "$COLTEST_SEED"}
