#!/bin/bash
# Ranks start with default signals, an empty mask, and the open file limit that colrun was given.
. "$(dirname "$0")/lib.sh"

expect_exit 0 bash -c 'trap "" INT TERM USR1 PIPE; ulimit -Sn 300; exec "$0" -n 1 sh -c "grep -E \"^Sig(Blk|Ign)\" /proc/self/status; ulimit -n"' "$COLRUN"
expect_in "$out" '^SigBlk:.0000000000000000$'
expect_in "$out" '^SigIgn:.0000000000000000$'
expect_in "$out" '^300$'
# As under nohup.
expect_exit 0 bash -c 'trap "" HUP; exec "$0" -n 1 grep SigIgn /proc/self/status' "$COLRUN"
expect_in "$out" '^SigIgn:.0000000000000001$'
nothing_left
