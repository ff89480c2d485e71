#!/usr/bin/env bash
# A program with libcol.a inside has shared memory and Gloo, and says of the other backends what they need.
. "$(dirname "$0")/lib.sh"
: "${LIBCOL_STATIC:?}" "${WITH_GLOO:?yes or no}"
unset LD_LIBRARY_PATH

libraries=(-lfmt -pthread -ldl)
[ "$WITH_GLOO" = no ] || libraries+=(-lgloo)
# The archive is whole by itself, wherever it lies.
cp "$LIBCOL_STATIC" .
build() {
  # shellcheck disable=SC2086 # a list of words
  ${CXX:-c++} -std=c++20 ${EXTRA_FLAGS:-} -I"$SOURCE_DIR/src/lib/include" "$1" -o "$2" libcol.a "${libraries[@]}" ||
    fail "$1 does not compile"
}
build "$SOURCE_DIR/src/examples/hello/hello.cpp" hello
! ldd ./hello | grep -q libcol || fail "it needs libcol.so: $(ldd ./hello)"
says_sum 1 ./hello
says_sum 3 "$COLRUN" -n 3 ./hello
[ "$WITH_GLOO" = no ] || COL_BACKEND=gloo says_sum 3 "$COLRUN" -n 3 ./hello

cat >reasons.cpp <<'TXT'
#include <cstdio>
#include <col/channel.hpp>

int main() {
  for (const std::string& name : col::backend_names())
    std::printf("%s: %s\n", name.c_str(), col::find_backend(name)->unavailable_reason().value_or("available").c_str());
}
TXT
build reasons.cpp reasons
./reasons >out
grep -qx 'shm: available' out || fail "$(cat out)"
[ "$WITH_GLOO" = no ] || grep -qx 'gloo: available' out || fail "$(cat out)"
for backend in ucx nccl; do
  grep -q "^$backend: needs the shared library: " out || fail "$(cat out)"
done
COL_BACKEND=ucx timeout --kill-after=5 60 "$COLRUN" -n 2 ./hello >out 2>&1 && fail "ucx in libcol.a"
grep -q 'unavailable: .*needs the shared library' out || fail "it says: $(cat out)"
