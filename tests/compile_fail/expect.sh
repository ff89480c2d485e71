#!/bin/sh
# Compiles a source that must compile, or one that must not, and then only for the line that says so.
# usage: expect.sh passes|fails SOURCE COMPILER [OPTION]…
set -u
expected=$1
source=$2
shift 2

output=$("$@" -fsyntax-only "$source" 2>&1)
code=$?

if [ "$expected" = passes ]; then
  [ $code -eq 0 ] && exit 0
  printf '%s\n' "$source does not compile, but must:" "$output"
  exit 1
fi

if [ $code -eq 0 ]; then
  printf '%s\n' "$source compiles, but must not: see its first line for why"
  exit 1
fi
# An error elsewhere (a missing header, a typing mistake) proves nothing.
line=$(grep -n 'expected-error' "$source" | cut -d: -f1)
errors=$(printf '%s\n' "$output" | grep -E '^[^ ]+:[0-9]+:[0-9]+: (fatal )?error: ')
others=$(printf '%s\n' "$errors" | grep -v -F "$(basename "$source"):$line:")
if [ -z "$errors" ] || [ -n "$others" ]; then
  printf '%s\n' "$source fails to compile, but not at line $line alone:" "$output"
  exit 1
fi
