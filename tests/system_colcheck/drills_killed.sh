#!/usr/bin/env bash
# Drills that are ended half way, in whatever manner, leave no process and no file.
. "$(dirname "$0")/lib.sh"

for signal in INT TERM KILL; do
  "$COLCHECK" --faults --only exits_early,stopped,late --backend shm --np 3 >"$out" 2>"$err" </dev/null &
  drills=$!
  deadline=$((SECONDS + 60))
  until compgen -G "$TMPDIR/col-*/col-fault-*" >/dev/null; do [ "$SECONDS" -lt "$deadline" ] || fail "no drill begins"; done
  kill -"$signal" "$drills"
  wait "$drills"
  until ! compgen -G "$TMPDIR/col-*" >/dev/null; do
    [ "$SECONDS" -lt "$deadline" ] || fail "SIG$signal leaves $(ls "$TMPDIR")"
  done
  until ! env -u TMPDIR grep -qsF "TMPDIR=$TMPDIR" /proc/[0-9]*/environ; do
    [ "$SECONDS" -lt "$deadline" ] || fail "SIG$signal leaves processes"
  done
done
nothing_left
