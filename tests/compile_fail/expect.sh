#!/bin/sh
# Compiles a source that must compile, or one that must not, and then only for the lines that say so. What stands behind
# "expected-error:" on a line is what the compiler must tell the user about it.
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
complaints=$(printf '%s\n' "$output" | awk -v source="$source" '
  BEGIN {
    while ((getline text < source) > 0) {
      ++number
      if (match(text, /expected-error/)) advice[number] = substr(text, RSTART + length("expected-error: "))
    }
  }
  /^[^ ]+:[0-9]+:[0-9]+: (fatal )?error: / {
    split($0, place, ":")
    line = place[1] == source ? place[2] : 0
    if (!(line in advice)) print "an error where none is expected: " $0
    met[line] = 1
  }
  # The line itself is shown too, and says nothing by that.
  !/expected-error/ && line in advice && index($0, advice[line]) { told[line] = 1 }
  END {
    for (line in advice) {
      if (!(line in met)) print "no error at line " line
      else if (!(line in told)) print "line " line ": the compiler does not say \"" advice[line] "\""
    }
  }')
[ -z "$complaints" ] && exit 0
printf '%s\n' "$source:" "$complaints" "$output"
exit 1
