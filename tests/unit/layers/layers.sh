#!/usr/bin/env bash
# Includes go one way: docs/architecture.md. usage: layers.sh ROOT
set -euo pipefail
cd "$1"

bad=0
report() { printf 'layers: %s\n' "$1"; bad=1; }

# rule FOLDER LAYER…: sources in FOLDER may include "LAYER/…" of these layers only, besides <…>; of a LAYER with a slash, what
# lies in that folder itself;
# or one file.
rule() {
  local folder=$1 allowed line file included
  shift
  allowed=" $* "
  [ -d "$folder" ] || return 0
  while IFS= read -r line; do
    file=${line%%:*}
    included=${line#*\"}
    included=${included%%\"*}
    case $allowed in
      *" ${included%%/*} "* | *" ${included%/*} "* | *" $included "*) ;;
      *) report "$file includes \"$included\"; $folder may only use:$allowed(see docs/architecture.md)" ;;
    esac
  done < <(grep -rnE --include='*.cpp' --include='*.hpp' '^\s*#\s*include "' "$folder" | sed -E 's/:[0-9]+:/:/')
}

rule src/lib/json json
rule src/lib/core core
rule src/lib/net core net
rule src/lib/store core net store
rule src/lib/plan core json plan
for backend in src/lib/backend/*/; do
  [ -d "$backend" ] && rule "${backend%/}" core json net store "backend"
done
rule src/lib/exec core plan exec
rule src/lib/group core json net store plan backend exec group
rule src/lib/capi capi
for tool in src/tools/*/; do
  [ -d "$tool" ] && rule "${tool%/}" json core/clock core/unique_fd.hpp common launch "$(basename "$tool")" \
    $([ "$tool" != src/tools/launch/ ] || echo net core/epoch_line.hpp)
done

# A backend sees its own folder and nothing of its siblings.
for backend in src/lib/backend/*/; do
  [ -d "$backend" ] || continue
  own=$(basename "$backend")
  while IFS= read -r line; do
    report "$line: a backend includes a sibling"
  done < <(grep -rnE --include='*.cpp' --include='*.hpp' '#include "backend/[a-z_]+/' "$backend" |
    grep -vE "#include \"backend/$own/" || true)
done

# Foreign headers of a backend stay inside it.
while IFS= read -r line; do
  report "$line: gloo's headers belong into src/lib/backend/gloo"
done < <(grep -rnE --include='*.cpp' --include='*.hpp' '#include [<"]gloo/' src | grep -v '^src/lib/backend/gloo/' || true)

while IFS= read -r line; do
  report "$line: UCX's headers belong into src/lib/backend/ucx"
done < <(grep -rnE --include='*.cpp' --include='*.hpp' '#include [<"]uc[mpst]/' src | grep -v '^src/lib/backend/ucx/' || true)

while IFS= read -r line; do
  report "$line: headers of CUDA and NCCL belong into src/lib/backend/nccl"
done < <(grep -rnE --include='*.cpp' --include='*.hpp' '#include [<"](cuda|nccl)[a-z_]*\.h[>"]' src |
  grep -v '^src/lib/backend/nccl/' || true)

# So do those of CLI11: the tools have one seam to it, and no header needs it.
while IFS= read -r line; do
  report "$line: CLI11's headers belong into src/tools/common/parse_words.cpp"
done < <(grep -rnE --include='*.cpp' --include='*.hpp' '#include [<"]CLI/' src/lib src/tools 2>/dev/null | grep -v '^src/tools/common/parse_words.cpp:' || true)

# That backend is a library of its own, which sees what is public, the clock, and how a store is asked for many keys. (Gloo's sees what has a COL_MODULE_EXPORT,
# too: the linker finds the rest.)
while IFS= read -r line; do
  report "$line: libcol_nccl.so uses <col/...>, core/clock and store/base/run.hpp alone"
done < <(grep -rnE '#include "(core|store|plan|exec|group)/' src/lib/backend/nccl 2>/dev/null |
  grep -vE '"(core/clock/|store/base/run\.hpp")' || true)

# Public headers include public headers and the standard library.
while IFS= read -r line; do
  report "$line: a public header includes a private one"
done < <(grep -rnE '#include "' src/lib/include || true)

# Examples and the Python module use the public interface.
while IFS= read -r line; do
  report "$line: examples and the Python module use <col/...> alone"
done < <(grep -rnE --include='*.cpp' --include='*.hpp' '#include "(core|store|plan|backend|exec|group)/' src/examples src/python 2>/dev/null || true)

# One place reads the environment of the library.
while IFS= read -r line; do
  report "$line: use core/env.hpp"
done < <(grep -rnE --include='*.cpp' --include='*.hpp' '\b(secure_)?getenv\(' src/lib | grep -v '^src/lib/core/env.cpp:' || true)

# Two folders never include each other: what both need lies in a folder below them.
while IFS= read -r line; do
  report "$line; move what both need into one folder below them"
done < <(grep -rHE --include='*.cpp' --include='*.hpp' '^\s*#\s*include "[^"]*/' src/lib src/tools | awk -F'[:"]' '
  {
    from = $1; sub("/[^/]*$", "", from)
    to = $3; sub("/[^/]*$", "", to)
    # A tool includes its own folders, those of other tools, and json, core and net of the library.
    to = (from ~ "^src/tools/" && to !~ "^(json|core|net)") ? "src/tools/" to : "src/lib/" to
    if (from != to) edge[from, to] = $1
  }
  END {
    for (pair in edge) {
      split(pair, folder, SUBSEP)
      if (folder[1] < folder[2] && (folder[2], folder[1]) in edge)
        printf "%s includes %s, and %s includes %s\n", edge[pair], folder[2], edge[folder[2], folder[1]], folder[1]
    }
  }')

exit $bad
