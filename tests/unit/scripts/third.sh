#!/usr/bin/env bash
# Which third of the variants a change runs: what COL_TEST_THIRD says, else what the number of commits does.
set -euo pipefail
. "$(dirname "$0")/../../../scripts/lib.sh"

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
expect() {  # expect THIRD WHAT
  local got
  got=$(test_third)
  [ "$got" = "$1" ] || fail "third $got instead of $1: $2"
}

for third in 1 2 3 all; do COL_TEST_THIRD=$third expect "$third" "COL_TEST_THIRD=$third"; done
for wrong in 0 4 ALL; do
  if (COL_TEST_THIRD=$wrong test_third) >/dev/null 2>&1; then fail "COL_TEST_THIRD=$wrong is taken"; fi
done

# With every commit the next one.
unset COL_TEST_THIRD
command -v git >/dev/null || { echo "skipped: no git"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
cd "$dir"
expect all "no history"
git init -q repository
cd repository
for third in 1 2 3 1; do
  git commit -q --allow-empty -m "$third"
  expect "$third" "$(git rev-list --count HEAD) commits"
done
git clone -q --depth 1 "file://$PWD" "$dir/shallow"
cd "$dir/shallow"
expect all "a shallow clone"
