#!/usr/bin/env bash
# A few random hangs, with calls of several groups in flight: who hangs is named. A run that fails shows its seed.
. "$(dirname "$0")/lib.sh"

expect 0 "$COLCHECK" --faults --only hung ${COLTEST_SEED:+--seed "$COLTEST_SEED"}
