#!/bin/bash
# colrun starts without the libraries that would take longer to load than a rank to start.
. "$(dirname "$0")/lib.sh"

# The dynamic loader's list, as ldd(1) prints it.
expect_exit 0 env LD_TRACE_LOADED_OBJECTS=1 "$COLRUN"
expect_in "$out" '^\s*libc\.'
if grep -E 'lib(col|fmt|gloo|crypto)\.so' "$out"; then fail "colrun loads these"; fi
# A job on one node makes no proof, so it does not load what makes them either.
expect_exit 0 env LD_DEBUG=files LD_DEBUG_OUTPUT="$work/loaded" "$COLRUN" -n 2 true
expect_in "$(grep -l colrun "$work"/loaded.* | head -n 1)" 'libc\.so'
if grep -h 'libcrypto' "$work"/loaded.*; then fail "colrun loads libcrypto"; fi
nothing_left
