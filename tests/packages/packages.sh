#!/usr/bin/env bash
# What scripts/dev package, scripts/dev tarball and the Containerfile make, in a bare root of this distribution: a program is built
# there with CMake, Meson and g++, and runs under colrun. As root, with debootstrap and a mirror of packages: minutes, so that
# scripts/dev everything runs it, and not the test suite.
# usage: packages.sh [--root FOLDER] [OPTION of scripts/dev package and tarball]…
#   --root FOLDER   a root that debootstrap has made, with g++, cmake, make, meson and pkg-config; it is copied, not changed
set -euo pipefail
. "$(dirname "$0")/bare_root.sh"
bare=
[ "${1:-}" != --root ] || { bare=$(realpath "${2:?--root needs a folder}"); shift 2; }
# The source package has the files of the commit, and debian/. It is built by who has it, and not here.
"$source_dir/scripts/dev" package --no-install --source --series noble "$work/sources"
(cd "$work" && dpkg-source -x sources/col_*~noble.dsc unpacked >"$work/out" 2>&1) || fail "the source package: $(cat "$work/out")"
diff <(cd "$work/unpacked" && find . -type f -not -path './debian/*' | sort) <(cd "$source_dir" && git ls-files ':!.gitignore' | sed 's|^|./|' | sort) ||
  fail "the source package has other files than the commit (above)"
"$source_dir/scripts/dev" package --no-install "$@" "$work/packages"
"$source_dir/scripts/dev" tarball --no-install "$@" "$work/col.tar.gz"
bare_root "$bare" g++,cmake,make,meson,pkg-config
# says_sum RANKS SCRIPT: what a shell says there.
says_sum() {
  local ranks=$1 rank
  in_root sh -ec "$2" >"$work/out" 2>"$work/err" || fail "$2: $(cat "$work/out" "$work/err")"
  grep '^rank' "$work/out" | sort >"$work/sorted"
  for ((rank = 0; rank < ranks; ++rank)); do echo "rank $rank of $ranks: the sum is $((ranks * (ranks + 1) / 2))"; done |
    diff "$work/sorted" - || fail "$2 says something else (above)"
}
mkdir -p "$root/home/program"
cp "$source_dir/src/examples/hello/hello.cpp" "$root/home/program"
cat >"$root/home/program/CMakeLists.txt" <<'TXT'
cmake_minimum_required(VERSION 3.16)
project(hello CXX)
find_package(col 0.1 REQUIRED COMPONENTS shared tools OPTIONAL_COMPONENTS static)
add_executable(hello hello.cpp)
target_link_libraries(hello PRIVATE col::col)
if(TARGET col::static)
  add_executable(hello_static hello.cpp)
  target_link_libraries(hello_static PRIVATE col::static)
endif()
TXT
cat >"$root/home/program/meson.build" <<'TXT'
project('hello', 'cpp', default_options: ['cpp_std=c++20'])
executable('hello', 'hello.cpp', dependencies: dependency('col'))
TXT
builds() {  # builds WHERE CMAKE_OPTION…: /home/program by each, with the environment in WHERE
  local where=$1
  shift
  says_sum 3 "$where cd /home/program; g++ -std=c++20 hello.cpp -o hello \$(pkg-config --cflags --libs col); colrun -n 3 ./hello"
  says_sum 3 "$where cd /home/program; rm -rf c; cmake -B c . $*; cmake --build c; colrun -n 3 c/hello"
  says_sum 3 "$where cd /home/program; rm -rf m; meson setup m; ninja -C m; colrun -n 3 m/hello"
  says_sum 2 "$where COL_BACKEND=gloo colrun -n 2 /home/program/m/hello"
  echo "built by g++, CMake and Meson, and run: $([ -n "$where" ] && echo tarball || echo packages)"
}

# ---- The tarball, wherever it lies, where nothing is installed
mkdir "$root/srv/any"
tar -C "$root/srv/any" -xzf "$work/col.tar.gz"
moved=$(cd "$root/srv/any" && echo col-*)
in_root sh -c "cd /srv/any/$moved && ldd bin/* lib/*.so lib/libcol0/*" | grep 'not found' | grep -v 'libuc[mpst]\.so' &&
  fail "the tarball lacks a library (above)"
builds "export PATH=/srv/any/$moved/bin:\$PATH PKG_CONFIG_PATH=/srv/any/$moved/lib/pkgconfig;" "-DCMAKE_PREFIX_PATH=/srv/any/$moved"
rm -rf "$root/srv/any"

# ---- The steps of the Containerfile; the packages are then installed
command=
while read -r word rest; do
  case $word in
    '' | \#* | FROM) ;;
    COPY) (cd "$work/packages" && read -ra words <<<"$rest" && cp ${words[0]} "$root${words[1]}") ;;
    RUN) in_root sh -ec "$rest" >"$work/log" 2>&1 || fail "RUN $rest: $(tail "$work/log")" ;;
    CMD) command=$rest ;;
    *) fail "the Containerfile has $word, which this test does not know" ;;
  esac
done <"$source_dir/packaging/Containerfile"
[ -n "$command" ] || fail "the Containerfile has no CMD"
in_root sh -ec "$command --only exact --np 2" >"$work/log" 2>&1 || fail "CMD $command: $(tail "$work/log")"
tail -n 1 "$work/log"
builds ""

# ---- A static program, and what else the packages bring
in_root sh -ec "apt-get update; apt-get install -y --no-install-recommends libfmt-dev libgloo-dev" >"$work/log" 2>&1 || fail "apt-get: $(tail "$work/log")"
says_sum 3 "cd /home/program; cmake -B c .; cmake --build c; ! ldd c/hello_static | grep libcol; colrun -n 3 c/hello_static"
says_sum 3 "cd /home/program; g++ -std=c++20 hello.cpp -o hello \$(pkg-config --cflags --libs col-static); colrun -n 3 ./hello"
for file in man/man1/colbench.1.gz man/man1/colcheck.1.gz man/man1/colrun.1.gz bash-completion/completions/colcheck col/selection.json col/configs/slurm/job.sbatch; do
  [ -e "$root/usr/share/$file" ] || fail "no /usr/share/$file"
done
echo "static programs run, too"
