#!/usr/bin/env bash
# scripts/hidden-gloo on a source package of the test's own, by a list of sources of its own.
set -euo pipefail
: "${ROOT:?of the sources}"
fail() { echo "FAILED: $*" >&2; exit 1; }
for program in apt-get dpkg-source dpkg-scansources cmake ninja; do
  command -v $program >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
version=$(dpkg-query -W -f '${source:Version}' libgloo-dev 2>/dev/null) || { echo "skipped: libgloo-dev is not installed"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/col-gloo-XXXXXX")
trap 'rm -rf "$work"' EXIT

# ---- A source package with the version of the distribution's, and with a shared library, were that not turned off
upstream=${version%-*}
tree=$work/packages/gloo-$upstream
mkdir -p "$tree" "$work/elsewhere"
cat >"$tree/CMakeLists.txt" <<'TXT'
cmake_minimum_required(VERSION 3.2)
project(gloo CXX)
option(BUILD_SHARED_LIBS "" ON)
add_library(gloo gloo.cc)
install(TARGETS gloo DESTINATION ${CMAKE_INSTALL_PREFIX}/lib)
TXT
echo 'const char* inside_gloo() { return __FILE__; }' >"$tree/gloo.cc"
tar -C "$work/packages" -cJf "$work/packages/gloo_$upstream.orig.tar.xz" "gloo-$upstream"
mkdir -p "$tree/debian/source"
echo '3.0 (quilt)' >"$tree/debian/source/format"
echo "made for a test" >"$tree/debian/copyright"
printf 'Source: gloo\nMaintainer: A <a@example.org>\n\nPackage: libgloo-dev\nArchitecture: any\nDescription: none\n' >"$tree/debian/control"
printf 'gloo (%s) unstable; urgency=low\n\n  * For a test.\n\n -- A <a@example.org>  Thu, 01 Jan 2026 00:00:00 +0000\n' "$version" >"$tree/debian/changelog"
(cd "$work/packages" && dpkg-source -b "gloo-$upstream" && rm -r "gloo-$upstream" && dpkg-scansources . >Sources) >"$work/log" 2>&1 ||
  fail "the source package: $(cat "$work/log")"

hidden_gloo() {  # hidden_gloo SOURCES ARGUMENT…: with that as the machine's list of sources
  mkdir -p "$work/parts"
  printf '%s\n' "$1" >"$work/parts/a.$2"
  printf 'Dir::Etc::sourcelist "%s/none";\nDir::Etc::sourceparts "%s/parts";\n' "$work" "$work" >"$work/apt.conf"
  (cd "$work/elsewhere" && APT_CONFIG=$work/apt.conf "$ROOT/scripts/hidden-gloo" "${@:3}") >"$work/out" 2>&1
}
is_made() {  # is_made FOLDER
  [ -f "$1/lib/libgloo.a" ] && [ "$(cat "$1/copyright")" = "made for a test" ] || fail "$1: $(ls -R "$1"; cat "$work/out")"
  [[ $(readelf -sW "$1/lib/libgloo.a") =~ GLOBAL\ +HIDDEN.*inside_gloo ]] || fail "its names are not hidden: $(readelf -sW "$1/lib/libgloo.a")"
  grep -q '^gloo/gloo\.cc$' < <(strings "$1/lib/libgloo.a") || fail "it has the folder in it where it was built"
}

# ---- By both forms of a list, into a folder by its path from here
hidden_gloo "deb [trusted=yes] file:$work/packages ./" list made || fail "of a .list: $(cat "$work/out")"
is_made "$work/elsewhere/made"
rm "$work/parts"/*
sources=$(printf 'Types: deb\nURIs: file:%s/packages\nSuites: ./\nTrusted: yes' "$work")
hidden_gloo "$sources" sources "$work/again" || fail "of a .sources: $(cat "$work/out")"
is_made "$work/again"

# ---- One that is there stays, and needs no sources any more
rm -r "$work/packages"
touch "$work/again/stays"
hidden_gloo "$sources" sources "$work/again" || fail "it is there: $(cat "$work/out")"
[ -e "$work/again/stays" ] || fail "it was made anew"
code=0
hidden_gloo "$sources" sources "$work/new" || code=$?
[ $code = 1 ] || fail "exit code $code without a source package: $(cat "$work/out")"
[ "$(grep -c '' "$work/out")" = 1 ] && grep -q "^hidden-gloo: apt-get finds no source package gloo $version: E: " "$work/out" ||
  fail "it says: $(cat "$work/out")"
code=0
hidden_gloo "" list || code=$?
[ $code = 2 ] || fail "exit code $code without a folder"
echo "hidden_gloo.sh"
