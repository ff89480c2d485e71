#!/bin/bash
# The bundle for machines with GPUs brings along what it needs: it runs from another folder, with an empty environment.
set -eu
: "${ROOT:?of the sources}" "${BUILD:?}" "${FAKE_CUDA:?}" "${FAKE_NCCL:?}" "${FAKE_KERNELS:?}"
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
[ -x bin/gpu_suite ] && [ -x report ] || fail "a script of the bundle cannot be executed"
said=$(env -i bin/print_reason)
case $said in
  *libcol_nccl* | '') fail "the module is not found: $said" ;;
esac
# report CODE VARIABLE=VALUE…: what it says is in $work/report.
report() {
  local expected=$1 code=0
  shift
  env -i PATH=/usr/bin:/bin "$@" ./report --seconds 90 >"$work/report" 2>&1 || code=$?
  [ "$code" = "$expected" ] || fail "exit code $code instead of $expected of the report: $(cat "$work/report")"
  grep -q '^- nccl: ' "$work/report" || fail "no reason in the report: $(cat "$work/report")"
}
says() { [ "$(grep -c "$1" "$work/report")" = "$2" ] || fail "not $2 times '$1' in the report: $(cat "$work/report")"; }
# Where there is no GPU, the report says so of each part, and is no success.
if [ "$said" != available ]; then
  report 77
  says '^exit code 77, skipped: not looked at$' 2
  says '^exit code' 2
fi
# With stand-ins for GPUs every part runs and is good: here fewer cases of each, as other tests have them all.
printf '#!/bin/sh\nexec "%s" "gpu: a graph repeats*"\n' "$PWD/bin/conformance_gpu" >"$work/few_tests"
chmod +x "$work/few_tests"
shorter() { # PROGRAM ARGUMENT…
  mv "bin/$1" "bin/$1.whole"
  printf '#!/bin/sh\nexec "$0.whole" "$@" %s\n' "${*:2}" >"bin/$1"
  chmod +x "bin/$1"
}
shorter colcheck --only in_place --np 2
shorter colbench --size 4K
report 0 FAKE_GPU_DEVICES=2 LD_LIBRARY_PATH="$FAKE_CUDA" COL_NCCL_LIBRARY="$FAKE_NCCL" \
  FAKE_GPU_KERNELS="$FAKE_KERNELS" CONFORMANCE_GPU="$work/few_tests"
says '^exit code 0, good$' 5
says '^exit code' 5
# What is wrong in one part is wrong in all.
printf '#!/bin/sh\nexit 3\n' >"$work/few_tests"
printf '#!/bin/sh\nexit 77\n' >bin/colcheck
report 1 FAKE_GPU_DEVICES=2 LD_LIBRARY_PATH="$FAKE_CUDA" COL_NCCL_LIBRARY="$FAKE_NCCL" \
  FAKE_GPU_KERNELS="$FAKE_KERNELS" CONFORMANCE_GPU="$work/few_tests"
says '^exit code 3, BAD$' 1
