#!/usr/bin/env bash
# Over shared memory, all results are right whichever way calls go: each way is forced, and logged.
. "$(dirname "$0")/lib.sh"

export COL_LOG_FILE=$work/log
unset COL_CMA COL_CALIBRATE COL_LOG

# check RANKS [OPTION…]: what decides is logged in $work/log.
check() {
  : >"$work/log"
  COL_LOG=debug expect 0 "$COLCHECK" --no-progress --backend shm --np "$1" --only "${2:-exact,roots,v_forms,in_place,same_bits}"
  says ' 0 failed'
}
logged() { grep -qF -- "$1" "$work/log" || { cat "$work/log" >&2; fail "the log does not say '$1'"; }; }

COL_CALIBRATE=off COL_CMA=on check 2,4
logged 'nothing is tried: slots of'
logged 'for broadcast always, reduce always, allreduce always, scatter always, gather always, allgather always, alltoall always'
COL_CALIBRATE=off check 2,4
logged 'for broadcast never, reduce never, allreduce never, scatter never, gather never, allgather never, alltoall never'
COL_CMA=off check 2
logged 'ranks try what is faster: slots of'
logged 'for broadcast never'
check 2,4
logged 'ranks try what is faster: slots of'
logged 'alltoall from '

# Rank 0's word counts for all, and a word that means nothing is an error.
COL_CALIBRATE=kept expect 1 "$COLCHECK" --no-progress --backend shm --np 2 --only barrier
says 'COL_CALIBRATE=kept is none of on, off'
COL_CMA=1 expect 1 "$COLCHECK" --no-progress --backend shm --np 2 --only barrier
says 'COL_CMA=1 is none of auto, off, on'
nothing_left
