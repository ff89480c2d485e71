#!/bin/bash
# -n auto and --bind-to keep to the processors that colrun itself may use, and name them as the system does.
. "$(dirname "$0")/lib.sh"

mapfile -t cpus < <(allowed_cpus)
mapfile -t cores < <(for cpu in "${cpus[@]}"; do core_of "$cpu"; done | sort -u)
last=${cpus[-1]}
expect_exit 0 taskset -c "$last" "$COLRUN" -n auto echo one
expect_lines "$out" 1
expect_exit 0 taskset -c "$last" "$COLRUN" -n 3 --bind-to core --report-bindings grep Cpus_allowed_list /proc/self/status
[ "$(grep -c "^Cpus_allowed_list:.$last\$" "$out")" -eq 3 ] || fail "a rank is not bound to CPU $last, the only one allowed"
for rank in 0 1 2; do expect_in "$err" "^rank $rank: CPU $last( |\$)"; done
# Not bound if that is asked for.
expect_exit 0 "$COLRUN" -n 2 --bind-to none grep Cpus_allowed_list /proc/self/status
[ "$(sort -u "$out")" = "$(grep Cpus_allowed_list /proc/self/status)" ] || fail "bound with --bind-to none"
# By list: in OS numbers, ranks take the lists in turn. A CPU that is not allowed is refused.
expect_exit 0 "$COLRUN" -n 2 --bind-to "list:$last;${cpus[0]}" sh -c 'grep -o "[0-9,-]*$" /proc/self/status -m1 >/dev/null; echo $RANK $(sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status)'
expect_in "$out" "^0 $last\$"
expect_in "$out" "^1 ${cpus[0]}\$"
expect_exit 2 taskset -c "$last" "$COLRUN" -n 1 --bind-to list:4096 touch "$work/started"
expect_in "$err" '4096'
if [ "${#cores[@]}" -gt 1 ]; then
  expect_exit 0 "$COLRUN" -n 2 --bind-to core sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status
  [ "$(sort -u "$out" | wc -l)" -eq 2 ] || fail "two ranks on one core while another is free"
fi
if [ "${#cpus[@]}" -gt 1 ]; then
  expect_exit 2 taskset -c "$last" "$COLRUN" -n 1 --bind-to "list:${cpus[0]}" touch "$work/started"
  expect_in "$err" "${cpus[0]}"
fi
expect_exit 0 "$COLRUN" -n 2 --bind-to numa true
for what in 'core:2' list: 'list:x' socket; do
  expect_exit 2 "$COLRUN" -n 1 --bind-to "$what" touch "$work/started"
  expect_lines "$err" 1
done
[ ! -e "$work/started" ] || fail "started in spite of a binding that cannot be"
nothing_left
