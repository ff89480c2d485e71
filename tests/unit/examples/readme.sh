#!/usr/bin/env bash
# What README files say about examples is what is in the tree. usage: readme.sh SOURCE_ROOT
set -euo pipefail
cd "$1"

# The ten-line program: README.md's block that is marked as this file.
block=$(awk '/^<!-- src\/examples\/hello\/hello.cpp -->$/ {found = 1; next}
             found && /^```cpp$/ {inside = 1; next}
             inside && /^```$/ {exit}
             inside {print}' README.md)
[ -n "$block" ] || { echo "README.md has no block marked <!-- src/examples/hello/hello.cpp -->"; exit 1; }
diff <(printf '%s\n' "$block") src/examples/hello/hello.cpp ||
  { echo "README.md and src/examples/hello/hello.cpp differ (above: < README, > file)"; exit 1; }

# The data is what its README says it is.
want=$(grep -oE '[0-9a-f]{64}' src/examples/data/README.md)
have=$(sha256sum src/examples/data/digits.csv | cut -d' ' -f1)
[ "$want" = "$have" ] || { echo "digits.csv has sha256 $have, its README says $want"; exit 1; }

# Every file and folder that README.md links to or maps exists.
bad=0
for path in $(grep -oE '\]\([^)#:]+\)' README.md | tr -d '()]' | sort -u) \
            $(awk '/^## The folders/ {inside = 1; next} /^## / {inside = 0} inside' README.md |
              grep -oE '^\| `[^`]+`' | tr -d '|` ' | sort -u); do
  [ -e "$path" ] || { echo "README.md names '$path', which does not exist"; bad=1; }
done
exit $bad
