#!/usr/bin/env bash
# Whatever a calibration finds out, all results are right: every outcome is forced, by settings and by files that say what no
# machine takes. A file that cannot be believed, or not be written, harms nothing.
. "$(dirname "$0")/lib.sh"

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
logged 'for broadcast always, scatter always, allgather always, alltoall always'
[ ! -e "$work/cache" ] || fail "a calibration that is off has made a folder"
COL_CALIBRATE=off COL_CMA=off check 2,4
logged 'for broadcast never, scatter never, allgather never, alltoall never'

# Where its file is, and what it calls this machine. A file that is there from now on says what it is to say.
for ranks in 2 4; do
  check $ranks barrier
  read -r path machine < <(sed -nE "s/.*calibration: '([^']*)' for '([^']*)' is not used.*/\1 \2/p" "$work/log")
  [ -n "$path" ] || fail "no calibration was looked for"
  # A second processor may be free only at times. On a machine with one, there is never a file.
  for _ in {1..30}; do
    [ -e "$path" ] || COL_CALIBRATE=now check $ranks barrier
  done
  # Otherwise it would be measured anew. The state of the machine may change meanwhile.
  line=$(sed -n 's/^line //p' "$path" 2>/dev/null || echo 60000)
  declare "path_$ranks=$path" "machine_$ranks=$machine" "line_$ranks=${line:-60000}"
done

# kept RANKS SECONDS_AGO YIELD SLOT_START SLOT_KIB KERNEL_START KERNEL_KIB STEP_64 STEP_128 STEP_256
kept() {
  local path=path_$1 machine=machine_$1 line=line_$1
  mkdir -p "$XDG_CACHE_HOME/col"
  printf '%s\n' 'col calibration 1' "machine ${!machine}" "made $(($(date +%s) - $2))" "line ${!line}" "yield $3" 'look 25000' \
    "slot_start $4" "slot_kib $5" "kernel_start $6" "kernel_kib $7" "step_kib_64 $8" "step_kib_128 $9" "step_kib_256 ${10}" \
    end >"${!path}"
  chmod 600 "${!path}"
}
# forced RANKS YIELD …: checks with such a file. If the machine is in another state by now, it was measured anew.
forced() {
  local path=path_$1
  for _ in {1..10}; do
    kept "$1" 0 "${@:2}"
    check "$1"
    ! grep -qF 'calibrated now' "$work/log" || { declare -g "line_$1=$(sed -n 's/^line //p' "${!path}")"; continue; }
    logged 'calibrated before: slots of'
    return
  done
  fail "the machine never stayed in one state"
}
for ranks in 2 4; do
  # The kernel copies for nothing; slots cost much, above all small ones; yields nothing.
  forced $ranks 1 1000000000 1000000 1 1 900000 800000 700000
  logged 'alltoall from 4 KiB'
  # The kernel is dear, small slots are best, and a yield takes long.
  forced $ranks 1000000000 1 1 1000000000 1000000 1 700000 900000
  logged 'alltoall never'
  # Nothing takes any time, and everything takes a second.
  forced $ranks 0 0 0 0 0 0 0 0
  forced $ranks 1000000000000 1000000000000 1000000000000 1000000000000 1000000000000 1000000000000 1000000000000 1000000000000
done

# What cannot be believed.
kept 2 700000 400000 200000 20000 900000 60000 30000 28000 26000
check 2 barrier
logged 'it is too old'
kept 2 0 400000 200000 20000 900000 60000 30000 28000 26000
chmod 666 "${path_2:?}"
check 2 barrier
logged 'others can have written it'
rm -f "$path_2"
head -c 4096 /dev/urandom >"$path_2"
chmod 600 "$path_2"
check 2 barrier
logged 'it is no calibration of this version'

# No folder, and no place for one.
XDG_CACHE_HOME=/proc/self/nothing check 2 barrier
not_logged 'kept in'
XDG_CACHE_HOME='' HOME='' check 2 barrier
not_logged 'kept in'

# Rank 0's word counts for all, and a word that means nothing is an error.
COL_CALIBRATE=maybe expect 1 "$COLCHECK" --no-progress --backend shm --np 2 --only barrier
says 'COL_CALIBRATE=maybe is none of auto, off, now'
COL_CMA=1 expect 1 "$COLCHECK" --no-progress --backend shm --np 2 --only barrier
says 'COL_CMA=1 is none of auto, off, on'
nothing_left
