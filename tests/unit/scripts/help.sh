#!/usr/bin/env bash
# scripts/dev prints the help of each of its commands at once: nothing is built, installed or fetched for that.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for tool in meson ninja make apt-get sudo pip curl; do
  printf '#!/bin/sh\necho "calls %s" >&2\nexit 1\n' $tool >"$work/$tool"
done
chmod +x "$work"/*
mapfile -t commands < <("$root/scripts/dev" --help | grep -oE '[a-z-]+ --help' | cut -d' ' -f1 | sort -u)
[ "${#commands[@]}" -ge 9 ] || fail "only ${#commands[@]} commands have a help of their own: ${commands[*]}"
for command in "${commands[@]}"; do
  text=$(PATH="$work:$PATH" timeout 60 "$root/scripts/dev" "$command" --help 2>&1) || fail "scripts/dev $command --help: $text"
  [[ $text == *usage:* ]] || fail "scripts/dev $command --help has no usage: $text"
  [[ $text != *"calls "* ]] || fail "scripts/dev $command --help $text"
done
