#!/usr/bin/env bash
# Whatever a calibration finds out, all results are right: every outcome is forced, by settings and by files that say what no
# machine takes. A file that cannot be believed, or not be written, harms nothing. scripts/dev calibrations does more of it.
. "$(dirname "$0")/lib.sh"
: "${KEEP_COSTS:?set KEEP_COSTS to the keep_costs program}"

export XDG_CACHE_HOME=$work/cache COL_LOG_FILE=$work/log
unset COL_CMA COL_CALIBRATE COL_LOG

# check RANKS [OPTION…]: what decides is logged in $work/log.
check() {
  : >"$work/log"
  COL_LOG=debug expect 0 "$COLCHECK" --no-progress --backend shm --np "$1" --only "${2:-exact,roots,v_forms,in_place,same_bits}"
  says ' 0 failed'
}
logged() { grep -qF -- "$1" "$work/log" || { cat "$work/log" >&2; fail "the log does not say '$1'"; }; }
not_logged() { ! grep -qF -- "$1" "$work/log" || { cat "$work/log" >&2; fail "the log says '$1'"; }; }

COL_CALIBRATE=off COL_CMA=on check 2,4
logged 'calibration is off: slots of'
logged 'for broadcast always, reduce always, allreduce always, scatter always, gather always, allgather always, alltoall always'
[ ! -e "$work/cache" ] || fail "a calibration that is off has made a folder"
COL_CALIBRATE=off COL_CMA=off check 2,4
logged 'for broadcast never, reduce never, allreduce never, scatter never, gather never, allgather never, alltoall never'
COL_CALIBRATE=kept check 2 barrier
logged 'no calibration is kept for this machine'

for outcome in $("$KEEP_COSTS" --list); do
  "$KEEP_COSTS" "$outcome" || fail "no costs are kept for $outcome"
  for ranks in 2 4; do
    COL_CALIBRATE=kept check $ranks
    logged 'calibrated before: slots of'
    not_logged 'calibrated in'
    case $outcome in
      kernel) logged 'alltoall from 4 KiB' ;;
      slots) logged 'alltoall never' ;;
    esac
    # Where ranks share a processor, what a wait costs decides.
    [ $ranks -le "$(nproc)" ] || continue
    case $outcome in
      kernel) logged 'slots of 256 KiB' ;;
      slots) logged 'slots of 64 KiB' ;;
      both) logged 'slots of 128 KiB' ;;
    esac
  done
done

# What cannot be believed.
believe_not() {  # believe_not WHY COMMAND…: what the command does to each of the files
  "$KEEP_COSTS" both
  local file
  for file in "$XDG_CACHE_HOME"/col/calibration-*; do "${@:2}" "$file"; done
  check 2 barrier
  logged "$1"
}
believe_not 'it is too old' sed -i "s/^made .*/made $(($(date +%s) - 700000))/"
believe_not 'others can have written it' chmod 666
spoil() { head -c 4096 /dev/urandom >"$1"; }
believe_not 'it is no calibration of this version' spoil

# No folder, and no place for one.
XDG_CACHE_HOME=/proc/self/nothing check 2 barrier
not_logged 'kept in'
XDG_CACHE_HOME='' HOME='' check 2 barrier
not_logged 'kept in'

# Rank 0's word counts for all, and a word that means nothing is an error.
COL_CALIBRATE=maybe expect 1 "$COLCHECK" --no-progress --backend shm --np 2 --only barrier
says 'COL_CALIBRATE=maybe is none of auto, off, now, kept'
COL_CMA=1 expect 1 "$COLCHECK" --no-progress --backend shm --np 2 --only barrier
says 'COL_CMA=1 is none of auto, off, on'
nothing_left
