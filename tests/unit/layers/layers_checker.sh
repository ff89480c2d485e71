#!/usr/bin/env bash
# The checker itself: each planted fault must be reported. usage: layers_checker.sh LAYERS_SH
set -euo pipefail
checker=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

plant() {  # plant FILE TEXT: a tree with this one file must be refused
  rm -rf "${dir:?}/src"
  mkdir -p "$dir/src/lib/include" "$dir/src/tools" "$dir/src/examples" "$dir/$(dirname "$1")"
  printf '%s\n' "$2" >"$dir/$1"
  if bash "$checker" "$dir" >"$dir/out" 2>&1; then
    printf 'not found: %s in %s\n' "$2" "$1" >&2
    exit 1
  fi
  grep -q "^layers: .*$(basename "$1")" "$dir/out" || { cat "$dir/out" >&2; exit 1; }
}

plant src/lib/core/a.cpp '#include "store/file_store.hpp"'
plant src/lib/json/a.cpp '#include "core/env.hpp"'
plant src/lib/net/a.cpp '#include "store/file_store.hpp"'
plant src/lib/store/a.cpp '#include "group/state.hpp"'
plant src/lib/backend/gloo/a.cpp '#include "group/state.hpp"'
plant src/lib/backend/shm/a.cpp '#include "backend/gloo/channel.hpp"'
plant src/lib/capi/a.cpp '#include "group/state.hpp"'
plant src/lib/group/a.cpp '#include <gloo/barrier.h>'
plant src/lib/group/a.cpp '#include <ucp/api/ucp.h>'
plant src/tools/common/command_line.hpp '#include <CLI/CLI.hpp>'
plant src/lib/group/a.cpp '#include <nccl.h>'
plant src/tools/colcheck/a.cpp '#include <cuda_runtime.h>'
plant src/lib/backend/nccl/a.cpp '#include "core/env.hpp"'
plant src/lib/backend/nccl/a.cpp '#include "store/base/text.hpp"'
plant src/lib/include/a.hpp '#include "core/env.hpp"'
plant src/tools/colrun/a.cpp '#include "core/env.hpp"'
plant src/tools/launch/a.cpp '#include "group/state.hpp"'
plant src/tools/colrun/a.cpp '#include "net/listener.hpp"'
plant src/examples/a.cpp '#include "core/env.hpp"'
plant src/lib/group/a.cpp 'auto x = getenv("COL_RANK");'

# Two folders that include each other.
rm -rf "${dir:?}/src"
mkdir -p "$dir/src/lib/include" "$dir/src/lib/store/tcp" "$dir/src/tools" "$dir/src/examples"
printf '#include "store/tcp/a.hpp"\n' >"$dir/src/lib/store/a.cpp"
printf '#include "store/a.hpp"\n' >"$dir/src/lib/store/tcp/a.cpp"
if bash "$checker" "$dir" >"$dir/out"; then
  printf 'not found: two folders that include each other\n' >&2
  exit 1
fi
grep -q '^layers: src/lib/store/a.cpp includes src/lib/store/tcp, and src/lib/store/tcp/a.cpp' "$dir/out" || { cat "$dir/out" >&2; exit 1; }

rm -rf "${dir:?}/src"
mkdir -p "$dir/src/lib/include" "$dir/src/lib/store" "$dir/src/tools/launch" "$dir/src/examples"
printf '#include "core/env.hpp"\n' >"$dir/src/lib/store/a.cpp"
mkdir -p "$dir/src/lib/backend/nccl"
printf '#include "core/clock/clock.hpp"\n#include "store/base/run.hpp"\n' >"$dir/src/lib/backend/nccl/a.cpp"
printf '#include "%s.hpp"\n' core/clock/clock core/unique_fd net/listener >"$dir/src/tools/launch/a.cpp"
bash "$checker" "$dir"
