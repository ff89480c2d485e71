#!/usr/bin/env bash
# Everything that is wrong with a command line is said in one line, before any rank starts.
. "$(dirname "$0")/lib.sh"

refused() {  # refused TEXT ARGUMENT…
  local text=$1
  shift
  expect 2 "$COLBENCH" "$@"
  complains "$text"
  [ "$(wc -l <"$err")" = 1 ] || fail "more than a line for '$*'"
  [ ! -s "$out" ] || fail "something was printed for '$*'"
}

refused "what shall be measured"
refused "did you mean 'allreduce'" allredcue
refused "at least one element" allreduce --size 0
refused "32X" allreduce --size 32X
refused "greatest size" allreduce --size 100000G
refused "did you mean '--size'" allreduce --sise 8
refused "--allow-single" allreduce -n 1
refused "cannot write" allreduce --json /nowhere/results.json
refused "cannot write" allreduce --csv /
refused "name a file that can be written" allreduce --html /nowhere/page.html
refused "name a file that can be written" allreduce --plot /nowhere/curves.svg
refused "name a file that can be written" tune allreduce -o /nowhere/table.json
refused "a drawing is SVG; end its name with .svg" allreduce --plot curves.png
refused "did you mean 'ring'" allreduce --size 1K --algo rign -q  # only ranks know it
refused "unknown backend" allreduce --backend smh
refused "no files /nowhere/a.json and /nowhere/b.json" compare /nowhere/a.json /nowhere/b.json
refused "no file /nowhere/b.json" compare "$0" /nowhere/b.json
refused "cannot read" compare "$work" "$work"
refused "compare" compare
results=$work/none.json
echo '{}' >"$results"
refused "did you mean 'mst'" draw --algorithm mts -n 4
refused "no results of colbench" draw "$results"
refused "--size is of plans" draw "$results" --size 64K
refused "a drawing is SVG; end its name with .svg" draw "$results" -o curves.pdf
refused "results are drawn as .svg or .html" draw "$results" -o "$work/x.json"
refused "cannot read" draw /nowhere/results.json
refused "a plan is drawn as .svg, .json or .txt" draw --algorithm mst -o "$work/x.html"
refused "which algorithm of broadcast? write --algorithm and one of " draw broadcast
refused "did you mean 'noise'? see colbench --help" nois
refused "did you mean 'tune'" help tunes
refused "a process for each rank; write --ranks 8 --device cuda" allreduce -g 8
refused "ranks" simulate allreduce --ranks none
refused 'suite is gone; `colbench allreduce --algo auto,ps_central,ps_sharded` compares' suite ps
refused 'bisect is gone; `colbench bidirectional --groups bisect` measures' bisect -n 4
refused "for a size write --size 32M" allreduce 32M
refused "for several collectives write allreduce,broadcast" allreduce broadcast
refused "file:" allreduce --size 1K --algo file:/nowhere/plan.json -q
export CUDA_VISIBLE_DEVICES=  # no GPU
expect 77 "$COLBENCH" allreduce --backend nccl
complains "skipped"
expect 77 "$COLBENCH" allreduce --device cuda
complains "skipped"
nothing_left
