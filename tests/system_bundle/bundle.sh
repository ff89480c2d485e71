#!/bin/bash
# The bundle for machines with GPUs brings along what it needs: it runs from another folder, with an empty environment.
set -eu
: "${ROOT:?of the sources}" "${BUILD:?}" "${FAKE_CUDA:?}" "${FAKE_NCCL:?}" "${FAKE_KERNELS:?}"
command -v patchelf >/dev/null || { echo "skipped: patchelf is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# A stand-in for NCCL comes along, with code of two architectures made up.
python3 - "$FAKE_NCCL" "$work/libnccl.so.2" <<'PY'
import struct, sys
def entry(architecture, payload):
    return struct.pack('<HHIQ12xI32x', 2, 257, 64, len(payload), architecture) + payload
code = entry(90, b'ninety' * 20) + entry(100, b'hundred' * 20)
with open(sys.argv[1], 'rb') as library, open(sys.argv[2], 'wb') as copy:
    copy.write(library.read() + struct.pack('<IHHQ', 0xba55ed50, 1, 16, len(code)) + code)
PY
"$ROOT/scripts/dev" gpu-bundle --build "$BUILD" --nccl "$work/libnccl.so.2" "$work/col-gpu.tar.gz"
[ "$(stat -c %s "$work/col-gpu.tar.gz")" -lt $((60 << 20)) ] || fail "it is larger than 60 MiB"
mkdir "$work/elsewhere"
tar -C "$work/elsewhere" -xzf "$work/col-gpu.tar.gz"
cd "$work/elsewhere/col-gpu"

# All that is loaded is in the bundle, or on every machine.
for object in bin/colrun bin/colcheck bin/colbench bin/digits_trainer bin/conformance_gpu bin/gpu_bounds bin/print_reason lib/*.so*; do
  needed=$(env -i /usr/bin/ldd "$object")
  outside=$(awk '$2 == "=>" { print $3 }' <<<"$needed" | grep -vE "^$PWD/(bin/\.\./)?lib/" |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so\.[0-9]+$' || true)
  [ -z "$outside" ] || fail "$object needs $outside"
done

env -i bin/colrun -n 2 bin/digits_trainer --epochs 1 --no-save >"$work/out" 2>&1 || fail "the trainer: $(cat "$work/out")"
env -i bin/colcheck --quick --only exact --np 2 >"$work/out" 2>&1 || fail "colcheck: $(cat "$work/out")"
[ -x bin/gpu_suite ] && [ -x bin/gpu_bounds ] && [ -x report ] || fail "a script of the bundle cannot be executed"
said=$(env -i bin/print_reason)
case $said in
  *libcol_nccl* | '') fail "the module is not found: $said" ;;
esac
# report CODE VARIABLE=VALUE… -- OPTION…: what it says is in $work/report.
report() {
  local expected=$1 code=0 environment=()
  shift
  while [ "$1" != -- ]; do environment+=("$1"); shift; done
  shift
  env -i PATH=/usr/bin:/bin "${environment[@]}" ./report --output "$work/file" "$@" >"$work/report" 2>&1 || code=$?
  [ "$code" = "$expected" ] || fail "exit code $code instead of $expected of the report: $(cat "$work/report")"
  cmp -s "$work/file" "$work/report" || fail "--output has something else"
}
# says COUNT PATTERN
says() { [ "$(grep -cE "$2" "$work/report")" = "$1" ] || fail "not $1 times '$2' in the report: $(cat "$work/report")"; }
# ended PART CODE: that part has run, and ended so.
ended() { says 1 "^$1: exit code $2 after "; }

# Where there is no GPU, the report says so, looks at nothing else, and is no success.
if [ "$said" != available ]; then
  report 77 -- --nccl machine
  ended reason 77
  says 1 ': exit code '
  says 1 '^- nccl: .'
fi

# With stand-ins for GPUs every part runs and is good: here fewer cases of each, as other tests have them all.
instead() { # PROGRAM SHELL…: the program itself is then $0.whole
  mv "bin/$1" "bin/$1.whole"
  printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
  chmod +x "bin/$1"
}
instead colbench 'exec "$0.whole" $(echo "$@" | sed "s/--size [^ ]*/--size 4K/; s/--max-time 1s/--max-time 100ms/")'
instead colcheck 'case "$*" in *--repro*) exec "$0.whole" "$@" ;; esac; exec "$0.whole" --device cuda --only in_place --np 2'
# The largest of its buffers would not find room.
instead gpu_bounds 'case $1 in copies | nccl) exec "$0.whole" "$@" 1048576 ;; esac; exec "$0.whole" "$@"'
printf '#!/bin/sh\nexec "%s" "$@" "gpu: a graph repeats*"\n' "$PWD/bin/conformance_gpu" >"$work/few_tests"
chmod +x "$work/few_tests"
gpus=(LD_LIBRARY_PATH="$FAKE_CUDA" FAKE_GPU_KERNELS="$FAKE_KERNELS" CONFORMANCE_GPU="$work/few_tests")
parts=$(./report --list | awk '{ print $1 }')
report 0 "${gpus[@]}" FAKE_GPU_DEVICES=2 --
for part in $parts; do
  case $part in
    python | torch*) ended "$part" 77 ;;  # the bundle has no wheel
    *) ended "$part" 0 ;;
  esac
done
says 1 "^- NCCL 2\.28\.9 in $PWD/lib/nccl/libnccl\.so\.2$"
# On one GPU, ranks share it where NCCL can do that; with an older one, a rank is alone on it.
report 0 "${gpus[@]}" FAKE_GPU_DEVICES=1 FAKE_NCCL_VERSION=23102 -- --only collective,suite,raw,graph
says 1 'which two ranks share'
for part in collective suite raw graph; do ended "$part" 0; done
says 1 'np=2,coll=allreduce'
says 1 '^ +1 of 1 cases passed, each by itself$'
report 0 "${gpus[@]}" FAKE_GPU_DEVICES=1 -- --only bench,collective --nccl "$FAKE_NCCL"
says 1 'one rank is alone on it'
says 1 'np=1,coll=allreduce'
says 1 "in $FAKE_NCCL"
ended bench 0
says 2 ': exit code '

# What is wrong in one part is wrong in all, and what takes too long is given up.
printf '#!/bin/sh\nexit 3\n' >"$work/few_tests"
printf '#!/bin/sh\nexit 77\n' >bin/colcheck
printf '#!/bin/sh\ncase $1 in nccl) exec sleep 100 ;; esac; exec "$0.whole" "$@"\n' >bin/gpu_bounds
report 1 "${gpus[@]}" FAKE_GPU_DEVICES=2 -- --only suite,colcheck,graph
ended suite 3
ended colcheck 77
ended graph 0
report 1 "${gpus[@]}" FAKE_GPU_DEVICES=2 -- --only raw --seconds 2
ended raw 124
usage() {
  local code=0
  ./report --output "$work/file" "${@:2}" >"$work/report" 2>&1 || code=$?
  [ "$code" = 2 ] || fail "exit code $code of report ${*:2}"
  says 1 "$1"
}
usage "there is no part 'raws'" --only raws
usage '^report: --seconds takes a whole number' --seconds soon
usage 'there is no file /none' --nccl /none
