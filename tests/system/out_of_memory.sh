#!/bin/bash
# A rank that the kernel kills for want of memory is said to be that, and no other SIGKILL is.
. "$(dirname "$0")/lib.sh"

expect_exit 137 "$COLRUN" -n 2 sh -c '[ $RANK = 1 ] || exec sleep 60; kill -KILL $$'
expect_in "$err" '^colrun: rank 1 .* was killed by SIGKILL after'
expect_not_in "$err" 'memory'

# A real one, in a group of its own with a limit.
if [ -d /run/systemd/system ] && timeout 10 systemd-run --quiet --scope -p MemoryMax=1G true 2>/dev/null; then
  expect_exit 137 systemd-run --quiet --scope -p MemoryMax=96M -p MemorySwapMax=0 "$COLRUN" -n 2 sh -c '
    [ $RANK = 1 ] || exec sleep 60; exec awk "BEGIN { s = \"x\"; for (;;) s = s s }"'
  expect_in "$err" '^colrun: rank 1 .* (out of memory|want of memory)'
fi

# What the kernel says of it lies in the files of the group; with files of our own in their place the rest is real.
unshare -rm mount -t tmpfs tmpfs /sys/fs/cgroup 2>/dev/null || { echo "no mount namespaces: the kernel's files cannot be replaced"; exit 77; }
cat >"$work/inside" <<'S'
mount -t tmpfs tmpfs /sys/fs/cgroup || exit 77
own=$(sed -n 's/^[0-9]*:\([^:]*,\)\?memory\(,[^:]*\)\?:\(.*\)/memory\3/p; ' /proc/self/cgroup)
kills=/sys/fs/cgroup/$own/memory.oom_control
[ -n "$own" ] || kills=/sys/fs/cgroup/$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.events
mkdir -p "${kills%/*}"
export kills
printf 'oom_kill_disable 0\nunder_oom 0\noom_kill 7\n' >"$kills"
"$COLRUN" -n 3 --json "$work/report" --report sh -c '[ $RANK = 1 ] || exec sleep 60
  head -c 50000000 /dev/zero | tail -c 50000000 >/dev/null
  printf "oom_kill 8\n" >"$kills"; kill -KILL $$'
S
export work
expect_exit 137 unshare -rm bash "$work/inside"
expect_in "$err" '^colrun: rank 1 .*out of memory'
expect_in "$work/report" '"out_of_memory": true'
[ "$(grep -c '"out_of_memory": true' "$work/report")" -eq 1 ] || fail "ranks that colrun ended are said to be out of memory"
nothing_left
