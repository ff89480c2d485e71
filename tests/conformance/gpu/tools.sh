#!/bin/bash
# The tools where there are GPUs: stand-ins, and every output says so.
set -u
: "${COLCHECK:?}" "${COLBENCH:?}"
# Nothing here is about how long NCCL's threads take to end: at times half a second. And what is checked in full once is
# not checked again where the question is what the report says.
export FAKE_NCCL_LOOK=10
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out

fail() {
  { echo "FAILED: $*"; cat "$out"; } >&2
  exit 1
}

# says CODE PATTERN COMMAND…
says() {
  local expected=$1 pattern=$2 code
  shift 2
  timeout 300 "$@" >"$out" 2>&1
  code=$?
  [ $code = "$expected" ] || fail "exit code $code, not $expected: $*"
  has "$pattern"
}
has() { grep -qE -- "$1" "$out" || fail "no '$1'"; }
lacks() { ! grep -qE -- "$1" "$out" || fail "there is a '$1'"; }

# ---- colcheck: every kind of memory over every backend, and nothing passes for a GPU that is none
says 0 '^[0-9,]+ cases passed, 0 failed, 0 skipped' "$COLCHECK" --device cuda --np 1-3 \
  --only exact,roots,untouched,guard_pages,unaligned,refill,v_forms,async,messages,same_bits,wrap \
  --json "$work/all.json" --junit "$work/all.xml"
for column in 'shm \(cuda, fake\)' 'gloo \(cuda, fake\)' 'shm \(mixed, fake\)' 'gloo \(mixed, fake\)' \
  'nccl \(cuda, fake\)' 'nccl \(mixed, fake\)' 'nccl \(cpu, fake\)'; do
  has "^primitive .*$column"
done
has '^GPUs: rank 0: fake GPU 0 0000:01:00.0; rank 1: fake GPU 1 0000:02:00.0; rank 2: fake GPU 2'
has '^NCCL 2\.28\.9 '
has 'These are stand-ins for GPUs'
lacks ' \((cuda|mixed)\)| [1-9][0-9]* holes? '
grep -q '"name": "fake GPU 0"' "$work/all.json" || fail 'no fake GPU in the JSON report'
grep -q 'classname="colcheck.exact.nccl-cuda-fake"' "$work/all.xml" || fail 'no fake GPU in the JUnit report'
! grep -qE 'classname="[^"]*-(cuda|mixed)"' "$work/all.xml" || fail 'a GPU in the JUnit report'

# By default the host is checked too.
says 0 '^primitive .*shm \(cpu\) .*shm \(cuda, fake\)' "$COLCHECK" --np 2 --only in_place
says 0 '^primitive +shm \(cpu\) +gloo \(cpu\) *$' "$COLCHECK" --np 2 --only in_place --device cpu
says 0 ' 0 failed' "$COLCHECK" --np 2 --only in_place --device cuda --require nccl,cuda

# ---- With fewer GPUs than ranks
says 0 '^– nccl: groups of 1 rank at most here: rank 1 shares a GPU' env FAKE_GPU_DEVICES=1 \
  "$COLCHECK" --device cuda --np 1-3 --only in_place
has '^GPUs: ranks 0, 1, 2: fake GPU 0'
has ' 0 failed, 0 skipped'
says 77 'groups of 1 rank at most here' env FAKE_GPU_DEVICES=1 "$COLCHECK" --backend nccl --np 3 --only exact
says 0 ' 0 failed, 0 skipped' env FAKE_GPU_DEVICES=1 FAKE_NCCL_VERSION=23003 NCCL_MULTI_RANK_GPU_ENABLE=1 \
  "$COLCHECK" --backend nccl --np 3 --only in_place
lacks 'at most here'

# ---- Where there are none
says 77 'no CUDA device can be checked: the CUDA driver sees no device' env FAKE_GPU_DEVICES=0 "$COLCHECK" --device cuda
says 77 'no CUDA device can be checked: no CUDA driver: ' env -u LD_LIBRARY_PATH "$COLCHECK" --device cuda
says 2 "'nccl' is required, and cannot be used here: " env FAKE_GPU_DEVICES=0 "$COLCHECK" --quick --require nccl
says 2 "'cuda' is required, and cannot be used here: " env FAKE_GPU_DEVICES=0 "$COLCHECK" --quick --require cuda
says 0 'nccl: no NCCL: ' env COL_NCCL_LIBRARY=/none "$COLCHECK" --device cuda --np 2 --only in_place
says 2 'none of those asked for is about GPUs' "$COLCHECK" --device cuda --only churn

# ---- Mistakes are found: in what NCCL gives, beside it, and in a backend over the host that GPU buffers go through
says 1 '^✘ in_place,backend=nccl.*byte [0-9]+ of ' env FAKE_NCCL_SPOIL=inside \
  "$COLCHECK" --backend nccl --device cuda --np 2 --only in_place
says 1 "^✘ guard_pages,backend=nccl.*the byte 1 after the buffer's end was overwritten" env FAKE_NCCL_SPOIL=beside \
  "$COLCHECK" --backend nccl --device cuda --np 2 --only guard_pages
# Whenever a GPU fails, and whatever the group then says: the word is with the rank whose GPU it is.
for copy in 30 50 70 90 110; do
  says 1 '^✘ in_place.*: the work on the GPU failed|^✘ in_place.*: cannot copy' \
    env FAKE_GPU_FAIL=cuMemcpyAsync:700:$copy "$COLCHECK" --backend shm --device cuda --np 2 --only in_place
  lacks '^✘.* (mismatch|peer_lost|aborted): '
done
token=np=3,coll=allreduce,algo=planted,dtype=float32,op=max,count=131,device=cuda,seed=0x5
says 1 '1 failed' "$COLCHECK" --repro "exact,backend=planted-dropped_last_element,$token"
says 0 '1 case passed' "$COLCHECK" --repro "exact,backend=planted-none,$token"

# ---- Drills
says 0 ' 0 failed, 0 skipped' "$COLCHECK" --device cuda --backend nccl --faults --only absent,exits_early,survivors

# ---- colbench: verified data over every kind of connection, and every output says what stood in for a GPU
quick=(--device cuda --max-time 50ms --min-iters 5 --launches 1)
says 0 '^# all rows: nccl, fake cuda, ' "$COLBENCH" \
  allreduce,reduce,broadcast,allgather,reduce_scatter,gather,scatter,alltoall -n 2 --sizes 4K,1M "${quick[@]}" \
  --check all --json "$work/bench.json" --csv "$work/bench.csv" --html "$work/bench.html"
has '^# colbench .*; rank 0: fake GPU 0 0000:01:00.0; rank 1: fake GPU 1 0000:02:00.0; NCCL 2\.28\.9 '
has '^# stand-ins for GPUs: '
has 'every row is verified'
has '^coll .* t50 +tdev '
grep -q '"device_ns": \[[0-9]' "$work/bench.json" || fail 'no times of GPUs in the JSON'
! grep -q '"device_ns": null' "$work/bench.json" || fail 'a row without the time of its GPUs in the JSON'
[ "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "device_t50_ns") at = i } NR > 1 && $at > 0' \
  "$work/bench.csv" | wc -l)" = 16 ] || fail 'a row without the time of its GPUs in the CSV'
grep -q '"gpus": "rank 0: fake GPU 0' "$work/bench.json" || fail 'no fake GPU in the JSON'
! grep -q '"fake": false' "$work/bench.json" || fail 'a row that is not fake in the JSON'
[ "$(grep -c ',fake cuda,' "$work/bench.csv")" = 16 ] || fail 'a row that is not fake in the CSV'
grep -q 'fake GPU 0' "$work/bench.html" || fail 'no fake GPU in the page'
says 0 'every row is verified' "$COLBENCH" sendrecv -n 2 --size 64K --backend nccl,shm,gloo "${quick[@]}" \
  --json "$work/messages.json"
! grep -q '"device_ns": \[' "$work/messages.json" || fail "a GPU's time of a message, which no stream of ours holds"
for device in cuda cpu-cuda cuda-cpu; do
  for backend in nccl shm gloo; do
    has "^pingpong .* $backend +fake $device "
  done
done
says 0 'every row is verified' "$COLBENCH" allreduce,allgather -n 2 --size 1M --place both --cache rotate "${quick[@]}"
says 0 'every row is verified' "$COLBENCH" sendrecv -n 2 --size 4M --cache rotate "${quick[@]}"
says 0 'every row is verified' "$COLBENCH" allreduce,barrier -n 2 --size 4K --algo ring "${quick[@]}" \
  --json "$work/through_host.json"
! grep -q '"device_ns": \[' "$work/through_host.json" || fail "a GPU's time of what goes through the host"
says 0 '^# all rows: shm, fake cuda, ' env FAKE_GPU_DEVICES=1 "$COLBENCH" allreduce -n 2 --size 64K "${quick[@]}"
says 2 'ranks 0 and 1 are on one GPU' env FAKE_GPU_DEVICES=1 "$COLBENCH" allreduce -n 2 --backend nccl "${quick[@]}"
says 1 'wrong data: rank [01], element 1023' env FAKE_NCCL_SPOIL=inside "$COLBENCH" allreduce -n 2 --size 4K "${quick[@]}"
says 0 'fake GPU 0' "$COLBENCH" pairs -n 2 --backend nccl --max-time 50ms --launches 1
says 2 'add --device cuda' "$COLBENCH" allreduce --backend nccl
says 77 'no CUDA device can be used here: the CUDA driver sees no device' env FAKE_GPU_DEVICES=0 \
  "$COLBENCH" allreduce --device cuda
says 77 'nccl cannot be used here: no NCCL: ' env COL_NCCL_LIBRARY=/none "$COLBENCH" allreduce --backend nccl
