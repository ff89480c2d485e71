#!/bin/bash
# Why the nccl backend cannot be used: each reason, as a user reads it. Where it can be, it says so.
set -u
: "${PRINT_REASON:?}" "${MODULES:?the folder of libcol_nccl.so}" "${FAKE_CUDA:?its folder}" "${FAKE_NCCL:?}" \
  "${OTHER_BUILD:?}" "${NO_MODULE:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# says PATTERN VARIABLE=VALUE…: the reason with these, and with nothing else of the kind.
says() {
  local pattern=$1 said
  shift
  said=$(env -u COL_NCCL_LIBRARY -u LD_LIBRARY_PATH COL_PLUGIN_PATH="$MODULES" "$@" timeout 60 "$PRINT_REASON") ||
    { echo "FAILED: exit code $? with $*: $said" >&2; exit 1; }
  grep -qE -- "$pattern" <<<"$said" || { echo "FAILED: with $*, no '$pattern' in: $said" >&2; exit 1; }
}

gpu=("LD_LIBRARY_PATH=$FAKE_CUDA" "COL_NCCL_LIBRARY=$FAKE_NCCL")
says '^available$' "${gpu[@]}"
mkdir "$work/no_driver"
: >"$work/no_driver/libcuda.so.1"
says '^no CUDA driver: .*libcuda\.so\.1' "LD_LIBRARY_PATH=$work/no_driver"
says 'the CUDA driver does not start: CUDA_ERROR' "${gpu[@]}" FAKE_GPU_NO_DRIVER=1
says 'the CUDA driver sees no device' "${gpu[@]}" FAKE_GPU_DEVICES=0
says 'the CUDA driver is for CUDA 11\.8, and 12\.0 is the oldest' "${gpu[@]}" FAKE_GPU_DRIVER=11080
says "^no NCCL: $work/none: cannot open" "${gpu[@]}" "COL_NCCL_LIBRARY=$work/none"
says 'is version 2\.18\.3, and 2\.19 to 2\.x serve; name another with COL_NCCL_LIBRARY' "${gpu[@]}" FAKE_NCCL_VERSION=21803
says 'is version 3\.0\.0' "${gpu[@]}" FAKE_NCCL_VERSION=30000
says '^available$' "${gpu[@]}" FAKE_NCCL_VERSION=21900
says 'NCCL_COMM_BLOCKING=1 makes NCCL wait inside its calls.*unset it' "${gpu[@]}" NCCL_COMM_BLOCKING=1
says '^available$' "${gpu[@]}" NCCL_COMM_BLOCKING=0
says '^available$' "${gpu[@]}" NCCL_COMM_BLOCKING=1 COL_NCCL_BLOCKING=on
says 'NCCL_COMM_BLOCKING=0 contradicts COL_NCCL_BLOCKING=on; unset one of them' "${gpu[@]}" NCCL_COMM_BLOCKING=0 COL_NCCL_BLOCKING=on
# NCCL's own wheel, beside col's; and a CUDA toolkit of the user's.
site=$work/site-packages
mkdir -p "$site/col/lib" "$site/nvidia/nccl/lib" "$work/home/lib64"
cp "$MODULES/libcol_nccl.so" "$site/col/lib/"
cp "$FAKE_NCCL" "$site/nvidia/nccl/lib/libnccl.so.2"
cp "$FAKE_NCCL" "$work/home/lib64/libnccl.so.2"
mkdir "$work/cuda_alone"
cp -L "$FAKE_CUDA/libcuda.so.1" "$work/cuda_alone/"
if ! LD_LIBRARY_PATH=$work/cuda_alone python3 -c 'import ctypes; ctypes.CDLL("libnccl.so.2")' 2>/dev/null; then
  says '^available$' "LD_LIBRARY_PATH=$work/cuda_alone" "COL_PLUGIN_PATH=$site/col/lib"
  says '^available$' "LD_LIBRARY_PATH=$work/cuda_alone" "CUDA_HOME=$work/home"
fi
mkdir "$work/other" "$work/none_of_it" "$work/broken"
cp "$OTHER_BUILD" "$work/other/libcol_nccl.so"
says 'belongs to another build of col \(0\.0\.0 another build, this is .+\); install both from one build' "COL_PLUGIN_PATH=$work/other"
cp "$NO_MODULE" "$work/none_of_it/libcol_nccl.so"
says 'is no backend of col: it has no col_backend_entry' "COL_PLUGIN_PATH=$work/none_of_it"
echo nonsense >"$work/broken/libcol_nccl.so"
says 'cannot load .*libcol_nccl\.so' "COL_PLUGIN_PATH=$work/broken"
