#!/bin/bash
# Without -n there is one rank for each usable CPU; every spelling of -n counts.
. "$(dirname "$0")/lib.sh"

expect_exit 0 taskset -c "$(allowed_cpus | head -n 1)" "$COLRUN" echo one
expect_lines "$out" 1
expect_exit 0 "$COLRUN" echo all
has_cpu_quota || expect_lines "$out" "$(env -u OMP_NUM_THREADS nproc)"
for spelling in '-n 3' '-n3' '-np 3' '--np 3' '--np=3' '--nproc-per-node 3' '--nproc-per-node=3' \
  '--nproc_per_node 3' '--nproc_per_node=3' '--standalone -n 3' '-ln 3'; do
  # shellcheck disable=SC2086
  expect_exit 0 "$COLRUN" $spelling -- echo x
  expect_lines "$out" 3
done
expect_exit 0 "$COLRUN" -n 1 echo -n 7 --label
expect_in "$out" '^7 --label$'
nothing_left
