#!/usr/bin/env bash
# The commands around measuring: each does what its --help says.
. "$(dirname "$0")/lib.sh"

expect 0 "$COLBENCH" draw --algorithm mst -n 8
says "rank 7"
expect 0 "$COLBENCH" draw --algorithm mst -n 8 -o "$work/mst.svg"
python3 -c 'import sys, xml.etree.ElementTree as x; assert x.parse(sys.argv[1]).getroot().tag.endswith("svg")' "$work/mst.svg" ||
  fail "no SVG"
expect 0 "$COLBENCH" draw --algorithm ring -n 3 --count 768 -o "$work/ring.json"
expect 0 "$COLBENCH" allreduce -n 3 --size 3K --algo "file:$work/ring.json" --max-time 50ms --launches 1 --bound off
says "every row is verified"
expect 0 "$COLBENCH" allreduce -n 2 --sizes 1K,64K --max-time 50ms --launches 1 --bound off --json "$work/results.json"
expect 0 "$COLBENCH" draw "$work/results.json"
says "64K"
expect 0 "$COLBENCH" draw "$work/results.json" -o "$work/results.html"
grep -q '<svg class="chart"' "$work/results.html" || fail "no curves"
expect 0 "$COLBENCH" explain allreduce --size 32M -n 8
says "rule"
expect 0 "$COLBENCH" simulate allreduce --ranks 64 --topology nodes:8x8 --alpha 5us --beta 25GB/s --sizes 1K:16M:x16
says "rabenseifner"
expect 0 "$COLBENCH" simulate allreduce --ranks 64 --sizes 1K --max-time 0s
says "ranked by its closed form"
expect 0 "$COLBENCH" algorithms allreduce -n 2 --size 16K --max-time 50ms --launches 1
says "rabenseifner"
says "ring"
expect 0 "$COLBENCH" tune broadcast -n 2 --sizes 1K:64K:x8 --max-time 30ms --launches 1 --bound off -o "$work/selection.json"
COL_SELECTION=$work/selection.json expect 0 "$COLBENCH" explain broadcast --size 8K -n 2
says "selection.json"
expect 0 "$COLBENCH" pairs -n 3 --size 8,64K --max-time 30ms --launches 1 --bound off
says "bandwidth of 64K messages, in "
for command in compare noise algorithms tune explain simulate draw pairs; do
  expect 0 "$COLBENCH" "$command" --help
  says "Usage: colbench $command"
done
nothing_left
