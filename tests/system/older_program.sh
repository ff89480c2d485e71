#!/usr/bin/env bash
# Programs in C++ and C that were compiled with the headers of the baseline run with this libcol: docs/abi.md.
. "$(dirname "$0")/lib.sh"
: "${ROOT:?of the sources}" "${LIBRARIES:?the folder of libcol.so}" "${CXX:?the compiler}"
skip() { echo "skipped: $*"; exit 77; }

baseline=$(ls "$ROOT"/packaging/abi/libcol.so.*-"$(uname -m)" 2>/dev/null | sort -V | tail -n 1)
[ -n "$baseline" ] || skip "there is no baseline for $(uname -m)"
tree=$(sed -nE '1s/^#.*Headers: tree ([0-9a-f]+)$/\1/p' "$baseline")
[ -n "$tree" ] || fail "$baseline names no tree of headers: it was made outside of a clone"
in_clone() { git -C "$ROOT" -c safe.directory='*' "$@"; }
[ "$(in_clone rev-parse --is-shallow-repository 2>/dev/null)" = false ] || skip "this is no clone with its history, which has these headers"
in_clone cat-file -e "$tree" 2>/dev/null ||
  fail "$baseline was made of headers that no commit has: scripts/dev abi make, once more with those that are committed"
mkdir "$work/include"
in_clone archive "$tree" | tar -x -C "$work/include"
read -ra compiler <<<"$CXX"

compile() {  # compile PROGRAM SOURCE OPTION…
  "${compiler[@]}" "${@:3}" -I "$work/include" "$2" -o "$work/$1" -L "$LIBRARIES" -lcol -Wl,-rpath,"$LIBRARIES" 2>"$work/log" ||
    fail "$1 does not compile with the baseline's headers, or does not link: $(grep -m 3 -E 'error|undefined' "$work/log")"
}
compile older_program "$(dirname "$0")/older_program.cpp" -std=c++20
compile hello_c "$ROOT/src/examples/hello_c/hello.c" -x c -std=c99

out=$(timeout --kill-after=5 120 "$COLRUN" -n 2 "$work/older_program" 2>&1) || fail "older_program: $out"
[ "$(grep -c 'rank is done' <<<"$out")" = 2 ] || fail "older_program says: $out"
out=$(timeout --kill-after=5 120 "$COLRUN" -n 2 "$work/hello_c" 2>&1) || fail "hello_c: $out"
[ "$(grep -c 'of 2: the sum is 3$' <<<"$out")" = 2 ] || fail "hello_c says: $out"
