#!/usr/bin/env bash
# docs/checking.md has a line for every property that --list prints, with the same words.
. "$(dirname "$0")/lib.sh"

expect 0 "$COLCHECK" --list
while read -r name summary; do
  summary=${summary% (with --faults)}
  [ -n "$summary" ] || continue
  grep -qF -- "| \`$name\` | $summary |" "$1" || fail "docs/checking.md lacks: | \`$name\` | $summary |"
done <"$out"
grep -q '^ *exact ' "$out" || fail "no list"
