#!/bin/bash
# A thousand ranks: started and gone, no zombies, whatever the limit of open files, which ranks get.
. "$(dirname "$0")/lib.sh"

[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 8192 ] || { echo "the hard limit of open files is $(ulimit -Hn)"; exit 77; }
need_processes 1000
expect_exit 0 "$COLRUN" -n 1000 true
[ ! -s "$err" ] || fail "something on stderr"
nothing_left
expect_exit 0 bash -c 'ulimit -Sn 256; exec "$0" -n 1000 sh -c "ulimit -Sn; ulimit -Hn"' "$COLRUN"
[ "$(sort -n "$out" | uniq -c | awk '{ print $1, $2 }' | paste -sd,)" = "1000 256,1000 $(ulimit -Hn)" ] || fail "not the limits that colrun was given"
nothing_left
# Where even the hard limit is too low: one line that says so, and nothing started.
expect_exit 125 bash -c 'ulimit -n 256; exec "$0" -n 1000 touch "$1/started"' "$COLRUN" "$work"
expect_lines "$err" 1
expect_in "$err" '^colrun: 1000 ranks need [0-9]+ open files, but the hard limit is 256; raise it \(ulimit -Hn\)'
[ ! -e "$work/started" ] || fail "a rank was started"
nothing_left
# While it runs, too, nothing is a zombie, and its output and exit codes are all there.
expect_exit 9 "$COLRUN" -n 1000 --keep-going sh -c 'echo $RANK; [ $RANK != 777 ] || exit 9'
sort -n "$out" | cmp - <(seq 0 999) || fail "not each rank once"
expect_in "$err" '^colrun: rank 777 '
nothing_left
