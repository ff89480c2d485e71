#!/bin/bash
# Without --bind-to, ranks get equal shares of the cores, where that does no harm; of jobs side by side, no two choose
# the same. What was chosen, and why nothing was, is said.
#
# Locks of cores are seen through sysfs. One of the test's own, if that may be mounted, keeps other jobs of this machine
# out of it.
if [ -z "${OWN_SYSFS:-}" ] && unshare -rmn mount -t sysfs sysfs /sys 2>/dev/null; then
  OWN_SYSFS=1 exec unshare -rmn bash -c 'mount -t sysfs sysfs /sys && exec bash "$0"' "$0"
fi
. "$(dirname "$0")/lib.sh"

processors() { sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status; }
mapfile -t cpus < <(allowed_cpus)
mapfile -t cores < <(for cpu in "${cpus[@]}"; do core_of "$cpu"; done | sort -u)
all=$(processors)
show() { expect_exit 0 "$@" sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status; }
# expect_unbound WHY COMMAND…: all ranks may run everywhere, and the report says why.
expect_unbound() {
  local why=$1
  shift
  show "$@" --report
  [ "$(sort -u "$out")" = "$all" ] || fail "bound: $(sort -u "$out" | tr '\n' ' ')"
  expect_in "$err" "^colrun: rank(s [0-9-]+| 0) (is|are) not bound to CPUs: $why"
}

# A rank that is alone keeps all; so does everybody when there are more ranks than processors.
expect_unbound 'a single rank may use all of them' "$COLRUN" -n 1
many=$((${#cpus[@]} + 1))
[ "$many" -le 64 ] && expect_unbound "there are $many ranks on ${#cpus[@]} CPU" "$COLRUN" -n "$many"
expect_exit 0 "$COLRUN" -n "$many" --dry-run true
expect_in "$out" "^not bound to CPUs: there are $many ranks on ${#cpus[@]} CPU"
expect_exit 0 "$COLRUN" -n "$many" --report-bindings true
expect_in "$err" "^rank 0: CPU.* \(not bound: there are $many ranks on"
COLRUN_BIND_TO=none show "$COLRUN" -n 2 --report
expect_not_in "$err" 'not bound'
# Said by nobody who was not asked.
show "$COLRUN" -n 2
[ ! -s "$err" ] || fail "a word about processors that nobody asked for"

[ "${#cores[@]}" -ge 2 ] || { echo "one core: there is nothing to share out"; exit 77; }
two=("${cpus[0]}" "${cpus[-1]}")
show "$COLRUN" -n 2 --report
if grep -qE 'not bound to CPUs: (other jobs hold|the control group|colrun itself)' "$err"; then
  echo "nobody can be bound here now: $(grep 'not bound' "$err")"
  exit 77
fi
[ "$(sort -u "$out" | wc -l)" -eq 2 ] || fail "two ranks with one share"
expect_not_in "$out" "^$all\$"
expect_in "$err" '^colrun: rank +CPUs +started'
expect_in "$err" "^colrun: 0 +$(sort -n "$out" | head -1) +"
# Who was bound before is left as he is.
show taskset -c "${two[0]}" "$COLRUN" -n 1 --report
expect_in "$out" "^${two[0]}\$"
if [ "${#cpus[@]}" -gt 2 ]; then
  show taskset -c "${two[0]},${two[1]}" "$COLRUN" -n 2 --report
  expect_in "$err" 'not bound to CPUs: colrun itself was bound, to'
fi
expect_unbound 'OMP_NUM_THREADS is 100000, and a share has' env OMP_NUM_THREADS=100000 "$COLRUN" -n 2
# A rank may change it.
expect_exit 0 "$COLRUN" -n 2 sh -c 'exec taskset -c "$0" sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status' "$all"
[ "$(sort -u "$out")" = "$all" ] || fail "a rank could not widen its share"
# A rank that is started again gets the same share.
expect_exit 0 "$COLRUN" -n 2 --max-restarts 1 sh -c 'echo $RANK $(sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status); [ $COL_RESTART_COUNT = 1 ] || exit 3'
[ "$(sort -u "$out" | wc -l)" -eq 2 ] || fail "another share after a restart: $(sort -u "$out" | tr '\n' ' ')"

# Two jobs: what the first holds the second does not get, until the first one's launcher is gone.
start_job() { # OPTION…
  rm -f "$work"/ready.*
  "$COLRUN" "$@" sh -c 'sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status >"$0/new.$RANK"; mv "$0/new.$RANK" "$0/ready.$RANK"; exec sleep 60' \
    "$work" >"$work/first.out" 2>"$work/first.err" &
  job=$!
  wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1"
}
start_job -n 2
[ "$(cat "$work/ready.0")" != "$(cat "$work/ready.1")" ] || fail "two ranks with one share"
show "$COLRUN" -n "${#cpus[@]}" --report
[ "$(sort -u "$out")" = "$all" ] || fail "cores that another job holds were given to a second one"
expect_in "$err" 'not bound to CPUs: (other jobs hold [0-9]+ of [0-9]+ cores|there are [0-9]+ ranks on)'
kill -KILL "$job"
wait "$job" 2>/dev/null
show "$COLRUN" -n 2 --report
expect_not_in "$err" 'not bound'
nothing_left_soon

# --bind-to core leaves another job's cores alone, too, as long as there are others for all ranks.
start_job -n 2 --bind-to core
taken=$(cat "$work/ready.0" "$work/ready.1" | sort)
show "$COLRUN" -n 2 --bind-to core
if [ "${#cores[@]}" -eq 2 ]; then
  [ "$(sort "$out")" = "$taken" ] || fail "two ranks on two cores, bound as: $(tr '\n' ' ' <"$out")"
elif [ "${#cores[@]}" -ge 4 ]; then
  [ -z "$(sort "$out" | comm -12 - <(echo "$taken"))" ] || fail "two jobs on one core though others are free"
fi
kill "$job"
wait "$job" 2>/dev/null
nothing_left_soon
