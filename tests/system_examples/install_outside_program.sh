#!/usr/bin/env bash
# What is installed is enough: a program outside the tree is compiled with pkg-config, and starts without
# LD_LIBRARY_PATH, alone and under the installed colrun; the installed trainer brings its data.
. "$(dirname "$0")/lib.sh"
unset LD_LIBRARY_PATH

meson install -C "$BUILD_DIR" --destdir "$work/stage" --no-rebuild --quiet >install.log 2>&1 || fail "$(cat install.log)"
pc=$(find stage -name col.pc)
[ -f "$pc" ] || fail "expected one col.pc, found: $pc"
configured=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --variable=prefix col)
prefix=$work/stage$configured
[ -x "$prefix/bin/colrun" ] && [ -x "$prefix/bin/digits_trainer" ] || fail "no tools in $prefix/bin: $(ls "$prefix/bin")"

# As if it had been installed with this prefix.
flags() { PKG_CONFIG_PATH=$work/$(dirname "$pc") pkg-config --define-variable=prefix="$prefix" "$@" col; }
echo "flags: $(flags --cflags --libs | sed "s#$prefix#PREFIX#g")"

cp "$SOURCE_DIR/src/examples/hello/hello.cpp" .
# shellcheck disable=SC2046,SC2086 # lists of words
${CXX:-c++} -std=c++20 ${EXTRA_FLAGS:-} hello.cpp -o hello $(flags --cflags --libs) || fail "hello.cpp does not compile"

alone=$(./hello)
[ "$alone" = "rank 0 of 1: the sum is 1" ] || fail "alone it says: $alone"
timeout --kill-after=5 60 "$prefix/bin/colrun" -n 3 ./hello | sort >out
diff out - <<'TXT' || fail "under colrun it says something else (above)"
rank 0 of 3: the sum is 6
rank 1 of 3: the sum is 6
rank 2 of 3: the sum is 6
TXT

# So does a program in C, whose compiler sees no C++.
cp "$SOURCE_DIR/src/examples/hello_c/hello.c" .
# shellcheck disable=SC2046,SC2086 # lists of words
${CC:-cc} -std=c99 -Wall -Wextra -Wpedantic -Werror ${EXTRA_FLAGS:-} hello.c -o hello_c $(flags --cflags --libs) ||
  fail "hello.c does not compile"
[ "$(./hello_c)" = "rank 0 of 1: the sum is 1" ] || fail "in C it says: $(./hello_c)"

# The program uses the installed library, by its soname.
library=$(ldd ./hello | awk '$1 == "libcol.so.0" {print $3}')
case $library in "$prefix"/*) ;; *) fail "hello uses '$library', not the installed libcol.so.0" ;; esac

timeout --kill-after=5 60 "$prefix/bin/colrun" -n 2 "$prefix/bin/digits_trainer" --epochs 1 --no-save >out
grep -q "test images of $prefix/share/col/digits.csv$" out || fail "the installed trainer reads other data: $(head -1 out)"
