#!/usr/bin/env bash
# What is installed is enough, and may be moved: a program outside the tree is compiled with pkg-config, and starts without
# LD_LIBRARY_PATH, alone and under the installed colrun; the installed trainer brings its data.
. "$(dirname "$0")/lib.sh"
unset LD_LIBRARY_PATH

prefix=$work/moved/col
install_moved "$prefix"
flags() { PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config "$@" col; }
# pkg-config and pkgconf write the way differently.
echo "flags: $(flags --cflags --libs | sed "s#$work#WORK#g")"
if grep -rn "$BUILD_DIR\|$SOURCE_DIR\|^prefix=/" "$libdir"/pkgconfig "$libdir"/cmake; then fail "a folder of the build is in it (above)"; fi
# Commands are in bin, and examples are not.
[ "$(cd "$prefix/bin" && echo *)" = "colbench colcheck coljob colrun" ] || fail "in bin: $(ls "$prefix/bin")"

cp "$SOURCE_DIR/src/examples/hello/hello.cpp" .
# shellcheck disable=SC2046,SC2086 # lists of words
${CXX:-c++} -std=c++20 ${EXTRA_FLAGS:-} hello.cpp -o hello $(flags --cflags --libs) || fail "hello.cpp does not compile"
says_sum 1 ./hello
says_sum 3 "$prefix/bin/colrun" -n 3 ./hello

# So does a program in C, whose compiler sees no C++.
cp "$SOURCE_DIR/src/examples/hello_c/hello.c" .
# shellcheck disable=SC2046,SC2086 # lists of words
${CC:-cc} -std=c99 -Wall -Wextra -Wpedantic -Werror ${EXTRA_FLAGS:-} hello.c -o hello_c $(flags --cflags --libs) ||
  fail "hello.c does not compile"
says_sum 1 ./hello_c

# So does one with a backend of its own.
# shellcheck disable=SC2046,SC2086 # lists of words
${CXX:-c++} -std=c++20 ${EXTRA_FLAGS:-} "$SOURCE_DIR/tests/system_examples/own_backend.cpp" -o own_backend $(flags --cflags --libs) ||
  fail "own_backend.cpp does not compile"
timeout --kill-after=5 60 "$prefix/bin/colrun" -n 3 ./own_backend >out || fail "own_backend: exit code $?"
[ "$(grep -o 'sum .*' out | sort | uniq -c | xargs)" = "3 sum 6, counted" ] || fail "own_backend says: $(cat out)"

# The program uses the installed library, by its soname.
library=$(realpath "$(ldd ./hello | awk '$1 == "libcol.so.0" {print $3}')")
case $library in "$prefix"/*) ;; *) fail "hello uses '$library', not the installed libcol.so.0" ;; esac

timeout --kill-after=5 60 "$prefix/bin/colrun" -n 2 "$prefix/libexec/col/digits_trainer" --epochs 1 --no-save >out
grep -q "test images of $prefix/share/col/digits.csv$" out || fail "the installed trainer reads other data: $(head -1 out)"
