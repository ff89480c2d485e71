#!/bin/bash
# The ranks of one host, for contestants without a launcher:  nodes_ranks.sh "0 2 4" PROGRAM [ARGUMENT…]
# They are in one session, as under a launcher: the kernel divides processors among sessions first. One that fails ends the others.
read -ra ranks <<<"$1"
shift
for place in "${!ranks[@]}"; do
  CONTEST_RANK=${ranks[place]} COL_RANK=${ranks[place]} COL_LOCAL_RANK=$place "$@" &
done
for _ in "${ranks[@]}"; do
  wait -n || { code=$?; kill $(jobs -p) 2>/dev/null; exit "$code"; }
done
