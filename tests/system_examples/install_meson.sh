#!/usr/bin/env bash
# dependency('col') of another project is what is installed, or else col as a part of that project, which then makes what the
# project uses, and no tests.
. "$(dirname "$0")/lib.sh"
unset LD_LIBRARY_PATH

prefix=$work/moved/col
install_moved "$prefix"
mkdir -p program/subprojects
cp "$SOURCE_DIR/src/examples/hello/hello.cpp" program
cat >program/meson.build <<'TXT'
project('program', 'cpp', default_options: ['cpp_std=c++20'])
executable('hello', 'hello.cpp', dependencies: dependency('col', version: '>=0.1'))
TXT
CXXFLAGS=${EXTRA_FLAGS:-} meson setup --pkg-config-path "$libdir/pkgconfig" -Db_lundef=false build program >log 2>&1 ||
  fail "meson: $(cat log)"
ninja -C build >log 2>&1 || fail "build: $(cat log)"
says_sum 1 build/hello
says_sum 3 "$prefix/bin/colrun" -n 3 build/hello

# The sources, without anybody's builds.
mkdir program/subprojects/col
cp -R "$SOURCE_DIR"/{meson.build,meson_options.txt,src,configs,docs} program/subprojects/col
printf '[wrap-file]\ndirectory = col\n\n[provide]\ndependency_names = col\n' >program/subprojects/col.wrap
meson setup --force-fallback-for=col -Dcol:backends=shm -Dcol:tools=false inside program >log 2>&1 || fail "subproject: $(cat log)"
targets=$(meson introspect --targets inside | python3 -c '
import json, sys
for target in json.load(sys.stdin): print(target["type"].replace(" ", "_"), target["name"])')
[ "$(awk '$1 == "executable" { print $2 }' <<<"$targets")" = hello ] || fail "it makes more than the program: $targets"
grep -qx 'shared_library col' <<<"$targets" || fail "it makes no libcol: $targets"
[ "$(meson introspect --tests inside)" = '[]' ] || fail "it has tests"
grep -q 'libcol\.so' <<<"$(ninja -C inside -t commands hello)" || fail "the program has no libcol in it"
ninja -C inside hello.p/hello.cpp.o >log 2>&1 || fail "the program does not compile: $(cat log)"
