#!/bin/bash
# The bundle for machines with GPUs brings along what it needs: it runs from another folder, with an empty environment.
set -eu
: "${ROOT:?of the sources}" "${BUILD:?}"
command -v patchelf >/dev/null || { echo "skipped: patchelf is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

"$ROOT/scripts/dev" gpu-bundle --build "$BUILD" "$work/col-gpu.tar.gz"
[ "$(stat -c %s "$work/col-gpu.tar.gz")" -lt $((60 << 20)) ] || fail "it is larger than 60 MiB"
mkdir "$work/elsewhere"
tar -C "$work/elsewhere" -xzf "$work/col-gpu.tar.gz"
cd "$work/elsewhere/col-gpu"

# All that is loaded is in the bundle, or on every machine.
for object in bin/colrun bin/colcheck bin/colbench bin/digits_trainer bin/conformance_gpu bin/print_reason lib/*; do
  needed=$(env -i /usr/bin/ldd "$object")
  outside=$(awk '$2 == "=>" { print $3 }' <<<"$needed" | grep -vE "^$PWD/(bin/\.\./)?lib/" |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so\.[0-9]+$' || true)
  [ -z "$outside" ] || fail "$object needs $outside"
done

env -i bin/colrun -n 2 bin/digits_trainer --epochs 1 --no-save >"$work/out" 2>&1 || fail "the trainer: $(cat "$work/out")"
env -i bin/colcheck --quick --only exact --np 2 >"$work/out" 2>&1 || fail "colcheck: $(cat "$work/out")"
said=$(env -i bin/print_reason)
case $said in
  *libcol_nccl* | '') fail "the module is not found: $said" ;;
esac
# Where there is no GPU, the report says so of each part, and is no success by itself.
env -i PATH=/usr/bin:/bin ./report --seconds 60 >"$work/report" 2>&1 || grep -q 'exit code [^07]' "$work/report" ||
  fail "the report: $(cat "$work/report")"
grep -q '^- nccl: ' "$work/report" || fail "no reason in the report: $(cat "$work/report")"
if [ "$said" != available ]; then grep -q 'skipped: not looked at' "$work/report" || fail "no skip: $(cat "$work/report")"; fi
