#!/bin/bash
# A control group with too little memory for the shared memory: `resource` that names the limit, and nobody is killed.
. "$(dirname "$0")/lib.sh"

skip() { echo "SKIPPED, nothing tested: $*"; exit 77; }

# A group of one's own: from systemd, or below the group of this process where that may have some (version 2 only). No
# other place: a group belongs to whoever manages it.
groups=/sys/fs/cgroup
[ -e $groups/cgroup.controllers ] || skip "no control groups of version 2 in $groups"
own=$groups$(sed -n 's/^0:://p' /proc/self/cgroup)
scope=(systemd-run --quiet --scope -p MemorySwapMax=0)
[ "$(id -u)" = 0 ] || scope+=(--user)
if [ -d /run/systemd/system ] && timeout 10 "${scope[@]}" -p MemoryMax=1G true 2>/dev/null; then
  group=
elif grep -qw memory "$own/cgroup.subtree_control" 2>/dev/null && mkdir "$own/coltest.$$" 2>/dev/null; then
  group=$own/coltest.$$
  remove_group() { echo 1 >"$group/cgroup.kill"; wait_until 10 "group stays" rmdir "$group"; } 2>/dev/null
  trap 'code=$?; remove_group; (exit $code); finish' EXIT
else
  skip "neither systemd nor $own gives a group with a memory limit"
fi

# in_group BYTES COMMAND…: leaves the most that was in use in $work/peak. Returns the command's exit code.
in_group() {
  local bytes=$1
  shift
  local command=(bash -c '
    "$@"
    code=$?
    cat "/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/memory.peak" >"$0"
    exit $code' "$work/peak" timeout -k 1 60 "$@")
  if [ -z "$group" ]; then
    "${scope[@]}" -p MemoryMax="$bytes" "${command[@]}" >"$out" 2>"$err"
  else
    # Anew, for its peak.
    rmdir "$group" && mkdir "$group" && echo "$bytes" >"$group/memory.max" || fail "cannot set up $group"
    if [ -e "$group/memory.swap.max" ]; then echo 0 >"$group/memory.swap.max"; fi
    (echo "$BASHPID" >"$group/cgroup.procs" && exec "${command[@]}") >"$out" 2>"$err"
  fi
}
# A program that has hardly any memory of its own: for that, nobody asks first.
export COL_LOG=info
ulimit -c 0
# Every rank has time to end with its error, also when colrun ends them because of the first.
job=("$COLRUN" -n 4 --grace 60s sh -c 'trap "" TERM; exec "$0"' "$HELLO")

# Twice: what the first run reads from files is not charged to the second one.
for _ in 1 2; do
  in_group $((1 << 30)) "${job[@]}" || fail "the job fails in a roomy group"
done
expect_in "$err" '4 ranks, backend shm'
[ -s "$work/peak" ] || skip "this kernel does not tell the most memory that a group used (Linux 5.19)"
peak=$(cat "$work/peak")

# Four times less, down to where a quarter of the shared memory fits: success, or an error that names the limit.
shared=$(sed -n 's/.* \([0-9]*\) KiB of shared memory.*/\1/p' "$err")
message='resource: .*shm: no room for the .* \([0-9]+ KiB are left in the memory limit of the control group /sys/fs/cgroup/'
for quarter in 0 1 2 3; do
  limit=$((peak - quarter * (shared << 10) / 4))
  in_group $limit "${job[@]}"
  code=$?
  [ -z "$group" ] || grep -qx 'oom_kill 0' "$group/memory.events" || fail "the kernel killed a process, limit $limit"
  [ $code -ne 0 ] || continue
  # The program catches nothing.
  [ $code -eq 134 ] || fail "exit code $code with a limit of $limit bytes"
  [ "$(grep -cE "^  what\(\):  $message" "$err")" -eq 4 ] || fail "not every rank ends with '$message'"
done
[ $code -ne 0 ] || fail "the job needs $peak bytes and has a limit of $limit; it runs nevertheless"
echo "the job needs $peak bytes; with $limit: $(grep -m 1 ' said ' "$err")"
nothing_left
