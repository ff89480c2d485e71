#!/bin/bash
# The report of the bundle for machines with GPUs: where there are several, it runs a process for each.
set -u
: "${REPORT:?}" "${PROGRAMS:?files, with spaces between them}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
for program in $PROGRAMS; do ln -s "$program" "$work/bin/"; done
cp "$REPORT" "$work/report"
# Sizes that the stand-ins have room for, and the times of a test.
rm "$work/bin/colbench"
for program in $PROGRAMS; do
  case $program in
    */colbench)
      printf '#!/bin/sh\nexec "%s" $(echo "$@" | sed "s/256M/64K/; s/--max-time [^ ]*/--max-time 50ms/")\n' "$program" \
        >"$work/bin/colbench"
      chmod +x "$work/bin/colbench"
      ;;
  esac
done
export OMP_NUM_THREADS=1

# report CODE GPUS PART
report() {
  local code=0
  FAKE_GPU_DEVICES=$2 timeout 100 "$work/report" --nccl "$COL_NCCL_LIBRARY" --only "$3" --output "$work/file" \
    >"$work/out" 2>&1 || code=$?
  [ "$code" = "$1" ] || fail "exit code $code, not $1"
}
fail() {
  { echo "FAILED: $*"; cat "$work/out"; } >&2
  exit 1
}
# says COUNT PATTERN
says() { [ "$(grep -cE -- "$2" "$work/out")" = "$1" ] || fail "not $1 times '$2'"; }

report 0 3 processes
says 1 '^processes: exit code 0 after '
says 2 '^ +digits_trainer: 3 ranks over nccl'
says 1 'rank 0: fake GPU 0 0000:01:00\.0; rank 1: fake GPU 1 0000:02:00\.0; rank 2: fake GPU 2 '
says 1 'every row is verified'

report 77 1 processes
says 1 '^ +skipped: it takes two GPUs$'
