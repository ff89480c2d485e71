#!/usr/bin/env bash
# What README files say about examples is what is in the tree. usage: readme.sh SOURCE_ROOT
set -euo pipefail
cd "$1"

# block PAGE FILE: the page's block that is marked as this file.
block() {
  awk -v mark="<!-- $2 -->" '$0 == mark {found = 1; next}
       found && /^```(c|cpp|python)$/ {inside = 1; next}
       inside && /^```$/ {exit}
       inside {print}' "$1"
}

# compare PAGE FILE TEXT: that block is this text of the file.
compare() {
  [ -n "$(block "$1" "$2")" ] || { echo "$1 has no block marked <!-- $2 -->"; exit 1; }
  diff <(block "$1" "$2") <(printf '%s\n' "$3") || { echo "$1 and $2 differ (above: < page, > file)"; exit 1; }
}

# part FILE: what stands between the marks, without the indentation of the first line.
part() {
  sed -n '/\[readme\]/,/\[\/readme\]/p' "$1" | sed '1d;$d' | awk 'NR == 1 {match($0, /^ */); n = RLENGTH} {print substr($0, n + 1)}'
}

compare README.md src/examples/hello/hello.cpp "$(cat src/examples/hello/hello.cpp)"
compare docs/guide.md src/examples/tour/tour.cpp "$(part src/examples/tour/tour.cpp)"
compare docs/rank-dies.md src/examples/tutorial/elastic.cpp "$(part src/examples/tutorial/elastic.cpp)"
compare docs/rank-dies.md src/examples/python/digits.py "$(part src/examples/python/digits.py)"
compare docs/c.md src/examples/hello_c/hello.c "$(cat src/examples/hello_c/hello.c)"
compare docs/ray.md src/examples/python/ray_actors.py "$(sed '1,/^"""$/d' src/examples/python/ray_actors.py | sed 1d)"
compare docs/ray.md tests/ray/graph_example.py "$(sed '1,/^$/d' tests/ray/graph_example.py)"
compare docs/ray.md tests/ray/refs_example.py "$(sed '1,/^$/d' tests/ray/refs_example.py)"
compare README.md src/examples/python/hello.py "$(sed '1,/^$/d' src/examples/python/hello.py)"
compare docs/python.md src/examples/python/hello.py "$(sed '1,/^$/d' src/examples/python/hello.py)"  # without its docstring
for pair in 1-hello:hello/hello.cpp 2-solver:tutorial/solver.cpp 3-training:tutorial/training.cpp 4-overlap:tutorial/overlap.cpp \
            6-trouble:tutorial/trouble.cpp; do
  compare "docs/tutorial/${pair%:*}.md" "src/examples/${pair#*:}" "$(cat "src/examples/${pair#*:}")"
done
compare docs/tutorial/3-training.md src/examples/python/training.py "$(sed '1,/^$/d' src/examples/python/training.py)"

# The data is what its README says it is.
want=$(grep -oE '[0-9a-f]{64}' src/examples/data/README.md)
have=$(sha256sum src/examples/data/digits.csv | cut -d' ' -f1)
[ "$want" = "$have" ] || { echo "digits.csv has sha256 $have, its README says $want"; exit 1; }

# Every file and folder that README.md links to, or docs/architecture.md maps, exists.
bad=0
for path in $(grep -oE '\]\([^)#:]+\)' README.md | tr -d '()]' | sort -u) \
            $(awk '/^## The folders/ {inside = 1; next} /^## / {inside = 0} inside' docs/architecture.md |
              grep -oE '^\| `[^`]+`' | tr -d '|` ' | sort -u); do
  [ -e "$path" ] || { echo "README.md or docs/architecture.md names '$path', which does not exist"; bad=1; }
done
exit $bad
