#!/bin/bash
# --report: times and memory of every rank at the end of a job, also of one that went well.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 3 --report bash -c '[ $RANK = 1 ] || { say_pid "$0/$RANK"; exit; }
  text=x; for i in {1..24}; do text=$text$text; done
  for other in 0 2; do await ended "$0/$other"; done' "$work"
[ ! -s "$out" ] || fail "something on stdout"
expect_in "$err" '^colrun: 3 ranks in [0-9.]+ s: started within .* \(first rank [0-2], last rank [0-2]\); ended within .* \(first rank [02], last rank 1\)$'
expect_in "$err" '^colrun: rank +(CPUs +)?started +ended +CPU time +peak RSS *$'
for rank in 0 1 2; do expect_in "$err" "^colrun: $rank +([0-9,-]+ +)?[0-9.]+ m?s +[0-9.]+ m?s +[0-9.]+ m?s +[0-9.]+ [KM]iB *\$"; done
# The rank that used memory is seen: half a megabyte is not 32.
peak=$(sed -n 's/^colrun: 1 .* \([0-9]*\)\.[0-9] MiB *$/\1/p' "$err")
[ "${peak:-0}" -ge 32 ] || fail "rank 1 used at least 32 MiB, but '$peak' is said"
expect_exit 0 "$COLRUN" -n 1 true
[ ! -s "$err" ] || fail "a report that nobody asked for"
# With many ranks: the extremes.
expect_exit 0 "$COLRUN" -n 100 --report true
expect_in "$err" '^colrun: least '
expect_in "$err" '^colrun: most '
[ "$(wc -l <"$err")" -lt 40 ] || fail "a line for each of a hundred ranks"
# Of a job that fails, after what is said about the failure.
expect_exit 6 "$COLRUN" -n 2 --report sh -c '[ $RANK = 0 ] && exit 6; exec sleep 60'
expect_in "$err" '^colrun: rank 0 .* exited with code 6'
expect_in "$err" '^colrun: (rank|least) '
nothing_left
