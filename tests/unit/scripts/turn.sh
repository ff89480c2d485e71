#!/usr/bin/env bash
# Checks whose turn it is in .ci/run: what COL_CI_TURN says, else what the number of commits does. The parts of the rest are the rest. The tests
# that ran are counted.
set -euo pipefail
. "$(dirname "$0")/../../../scripts/lib.sh"
build=$1

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
expect() {  # expect TURN WHAT
  local got
  got=$(ci_turn)
  [ "$got" = "$1" ] || fail "turn $got instead of $1: $2"
}

for turn in "${ci_turns[@]}" all; do COL_CI_TURN=$turn expect "$turn" "COL_CI_TURN=$turn"; done
for wrong in 0 rest "asan rest1" ALL; do
  if (COL_CI_TURN=$wrong ci_turn) >/dev/null 2>&1; then fail "COL_CI_TURN=$wrong is taken"; fi
done

# Each part has its turn, and the parts together are the rest.
whole=$(rest_part "$build" 1/1 | sort)
[ -n "$whole" ] || fail "the rest is empty"
parts=$(for ((part = 1; part <= rest_parts; ++part)); do
  [[ " ${ci_turns[*]} " == *" rest$part "* ]] || fail "rest$part has no turn"
  rest_part "$build" "$part/$rest_parts"
done | sort)
[ "$whole" = "$parts" ] || fail "the parts are not the rest: $(diff <(echo "$whole") <(echo "$parts"))"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/meson-logs"
for result in OK FAIL TIMEOUT OK SKIP OK; do
  printf '{"name": "col:unit+rest / %s", "duration": 1, "result": "%s"}\n' $result $result
done >"$dir/meson-logs/testlog.json"
echo "1 0 0" >"$dir/counts"
said=$(COL_TEST_COUNTS=$dir/counts python3 "$root/scripts/test-summary" "$dir")
[ "$(tail -n 1 "$dir/counts")" = "3 2 1" ] || fail "the counts are $(cat "$dir/counts")"
[[ $said == *"meson test -C $dir --print-errorlogs TIMEOUT"* ]] || fail "what failed is not repeated: $said"

# With every commit the next one.
unset COL_CI_TURN
command -v git >/dev/null || { echo "skipped: no git"; exit 77; }
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
cd "$dir"
expect all "no history"
git init -q repository
cd repository
for turn in "${ci_turns[@]:1}" "${ci_turns[@]}"; do
  git commit -q --allow-empty -m "$turn"
  expect "$turn" "$(git rev-list --count HEAD) commits"
done
git clone -q --depth 1 "file://$PWD" "$dir/shallow"
cd "$dir/shallow"
expect all "a shallow clone"
