#!/bin/bash
# Ranks that srun starts on several nodes, without colrun, are one world: they meet at the first of them.
. "$(dirname "$0")/slurm_lib.sh"
: "${DIGITS_TRAINER:?set DIGITS_TRAINER to the digits trainer}" "${HELLO:?set HELLO to the hello example}"
for name in $(compgen -e); do
  case $name in COL_[A-Z]*) unset "$name" ;; esac
done
export COL_TIMEOUT=25s
start_slurm

nothing_runs() { no_program "$HELLO" && no_program "$DIGITS_TRAINER"; }
# one_world RANKS OPTION…: as many ranks of hello, by srun with these options.
one_world() {
  local ranks=$1 rank
  shift
  expect_exit 0 on n1 srun --ntasks="$ranks" "$@" "$HELLO"
  for ((rank = 0; rank < ranks; ++rank)); do
    echo "rank $rank of $ranks: the sum is $((ranks * (ranks + 1) / 2))"
  done >"$work/expected"
  sort "$out" | diff "$work/expected" - >&2 || fail "not one world (above: < expected, > seen): $*"
  wait_until 5 "all gone" nothing_runs
  nothing_left
}

one_world 2 --nodes=1
one_world 2 --nodes=2
# Unequal nodes, nodes whose ranks do not follow one another, and a srun that is outside.
one_world 5 --nodes=3
one_world 4 --nodes=2 --distribution=cyclic
one_world 3 --nodelist=n2,n3
one_world 2 --nodes=2 --mpi=pmi2
one_world 3 --nodes=2 --mpi=pmix

# het_world NODES RANKS NODES RANKS: a heterogeneous step is one world. Slurm sorts the names of its nodes, whatever the
# order of the parts is, so the ranks need not begin on the first.
het_world() {
  local ranks=$(($2 + $4)) rank
  expect_exit 0 on n1 srun --quiet --nodelist="$1" --ntasks="$2" "$HELLO" : --nodelist="$3" --ntasks="$4" "$HELLO"
  for ((rank = 0; rank < ranks; ++rank)); do
    echo "rank $rank of $ranks: the sum is $((ranks * (ranks + 1) / 2))"
  done | sort | diff - <(sort "$out") >&2 || fail "not one world (above: < expected, > seen): $*"
  wait_until 5 "all gone" nothing_runs
  nothing_left
}
het_world n1 1 n2,n3 3
het_world n3 1 n1 2
printf '%s\n' n3 n1 n1 >"$work/placed"
SLURM_HOSTFILE=$work/placed one_world 3 --distribution=arbitrary

expect_exit 0 on n1 srun --nodes=2 --ntasks=4 "$DIGITS_TRAINER" --no-save --epochs 3
expect_in "$out" 'digits_trainer: 4 ranks over hosts'
expect_in "$out" '^test accuracy 0\.9[0-9]+ after 3 epochs on 4 ranks'
wait_until 5 "all gone" nothing_runs
nothing_left

# Two steps of one allocation at a time.
expect_exit 0 on n1 salloc --quiet --nodes=2 --ntasks=4 bash -c '
  for step in 1 2; do
    srun --exact --nodes=2 --ntasks=2 "$0" & pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || exit 1; done' "$HELLO"
sort "$out" | diff <(printf 'rank %s of 2: the sum is 3\n' 0 0 1 1) - >&2 ||
  fail "two steps (above: < expected, > seen)"
nothing_left

# A rank that is killed: the others are told, by the library alone.
COL_FAULT=kill:rank=3,op=17,step=0 timeout -k 1 40 on n1 srun --nodes=2 --ntasks=4 \
  "$DIGITS_TRAINER" --no-save --epochs 1000000 >"$out" 2>"$err" &&
  fail "srun returned 0 although a rank was killed"
expect_in "$err" 'peer_lost: .*rank 3|rank 3.*(lost|died|ended)'
wait_until 15 "all gone" nothing_runs
nothing_left

# The rank that the others meet at never comes: who waits says for whom, in time.
COL_TIMEOUT=3s timeout -k 1 40 on n1 srun --nodes=2 --ntasks=2 \
  sh -c '[ "$SLURM_PROCID" = 1 ] || exit 0; exec "$0"' "$HELLO" >"$out" 2>"$err" && fail "a world without rank 0"
expect_in "$err" 'timeout: .*n1|timeout: .*rank 0'
wait_until 5 "all gone" nothing_runs
nothing_left
