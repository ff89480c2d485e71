#!/usr/bin/env bash
# A backend that moves nothing is refused by the check, and by the physical bound.
. "$(dirname "$0")/lib.sh"

expect 0 "$COLBENCH" self-test
says "exit 1, wrong data"
says "exit 6, below the physical bound"
nothing_left
