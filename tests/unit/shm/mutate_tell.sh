#!/bin/bash
# mutate_tell.sh SOURCE RESULT ready|folded|done: writes native/prepared.cpp anew, with one of the counters told by a
# relaxed store. ThreadSanitizer must find the race: otherwise its silence about the real source says nothing.
set -euo pipefail
source=$1
result=$2
counter=$3
sed -E "s/^( *void tell_$counter\(std::uint64_t step\) \{) tell\((.*), step\); \}/\1 \2.store(step, std::memory_order_relaxed); }/" \
  "$source" >"$result"
[ "$(diff "$source" "$result" | grep -c '^>')" -eq 1 ] || {
  echo "$source has no tell_$counter() in one line; change this script with it" >&2
  exit 1
}
