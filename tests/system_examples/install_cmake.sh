#!/usr/bin/env bash
# find_package(col) finds what is installed, wherever it was moved: targets, versions, components, for C alone too.
. "$(dirname "$0")/lib.sh"
command -v cmake >/dev/null || { echo "skipped: cmake is not installed"; exit 77; }
unset LD_LIBRARY_PATH

prefix=$work/moved/col
install_moved "$prefix"
mkdir program
cp "$SOURCE_DIR/src/examples/hello/hello.cpp" "$SOURCE_DIR/src/examples/hello_c/hello.c" program
cat >program/CMakeLists.txt <<'TXT'
cmake_minimum_required(VERSION 3.16)
project(hello CXX)
find_package(col 0.1 REQUIRED COMPONENTS shared tools)
add_executable(hello hello.cpp)
target_link_libraries(hello PRIVATE col::col)
get_target_property(colrun col::colrun IMPORTED_LOCATION)
file(WRITE ${CMAKE_BINARY_DIR}/colrun ${colrun})
TXT
# configure FOLDER OPTION…: of CMake, for the sources in program/.
configure() {
  # shellcheck disable=SC2086 # lists of words
  cmake -S program -B "$1" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS="${EXTRA_FLAGS:-}" -DCMAKE_C_FLAGS="${EXTRA_FLAGS:-}" \
    "${@:2}" >log 2>&1
}
configure build || fail "cmake: $(cat log)"
cmake --build build >log 2>&1 || fail "build: $(cat log)"
[ "$(cat build/colrun)" = "$prefix/bin/colrun" ] || fail "col::colrun is $(cat build/colrun)"
says_sum 1 build/hello
says_sum 3 "$(cat build/colrun)" -n 3 build/hello

# A project in C alone.
cat >program/CMakeLists.txt <<'TXT'
cmake_minimum_required(VERSION 3.16)
project(hello C)
find_package(col REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello PRIVATE col::col)
TXT
configure build_c || fail "cmake for C: $(cat log)"
cmake --build build_c >log 2>&1 || fail "build of C: $(cat log)"
says_sum 2 "$prefix/bin/colrun" -n 2 build_c/hello

# accepts YES|NO PATTERN FIND_PACKAGE_ARGUMENT…
project=0
accepts() {
  local expected=$1 pattern=$2 found=yes
  shift 2
  printf 'cmake_minimum_required(VERSION 3.19)\nproject(p NONE)\nfind_package(col %s)\n' "$*" >program/CMakeLists.txt
  # Without a language CMake does not know of lib/x86_64-linux-gnu.
  configure "build$((++project))" -Dcol_DIR="$libdir/cmake/col" || found=no
  [ $found = "$expected" ] || fail "find_package(col $*): $(cat log)"
  tr -s ' \n' '  ' <log | grep -q -- "$pattern" || fail "find_package(col $*) does not say '$pattern': $(cat log)"
}
version=$("$prefix/bin/colrun" --version | awk '{ print $2 }')
accepts yes '' "$version" EXACT REQUIRED
accepts yes '' 0 REQUIRED
accepts yes '' 0.0.1...0.2 REQUIRED
accepts no "version: $version" 0.9 REQUIRED
accepts no "version: $version" 0.0 REQUIRED
accepts no "version: $version" 1.0 REQUIRED
accepts no "col has no component 'telepathy' here; it has .*shared" REQUIRED COMPONENTS telepathy
accepts yes '' COMPONENTS shared OPTIONAL_COMPONENTS telepathy
