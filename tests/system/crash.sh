#!/bin/bash
# A rank that dies of a signal gives 128 + signal and is named.
. "$(dirname "$0")/lib.sh"

expect_exit 139 "$COLRUN" -n 2 bash -c 'ulimit -c 0; [ $RANK = 1 ] && kill -SEGV $$; exec sleep 60'
expect_in "$err" '^colrun: rank 1 \(pid [0-9]+, host .+\) was killed by SIGSEGV after'
expect_in "$err" '^colrun: ended 1 other rank \(rank 0\)$'
nothing_left
