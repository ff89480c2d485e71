#!/bin/bash
# colrun starts without the libraries that would take longer to load than a rank to start.
. "$(dirname "$0")/lib.sh"

# The dynamic loader's list, as ldd(1) prints it.
expect_exit 0 env LD_TRACE_LOADED_OBJECTS=1 "$COLRUN"
expect_in "$out" '^\s*libc\.'
if grep -E 'lib(col|fmt|gloo)\.so' "$out"; then fail "colrun loads these"; fi
nothing_left
