#!/usr/bin/env bash
# A few random hangs, with calls of several groups in flight: who hangs is named. A run that fails shows its seed.
. "$(dirname "$0")/lib.sh"

expect 0 "$COLCHECK" --faults --only hung ${COLTEST_SEED:+--seed "$COLTEST_SEED"}

# A blocking call over shared memory whose culprit is no member of the group: its rank in the job was lost.
expect 0 "$COLCHECK" --repro 'hung,backend=shm,np=3,seed=0xa56f3b0230f8c5e3'
