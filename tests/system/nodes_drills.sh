#!/bin/bash
# colcheck's drills over two hosts of two ranks, on each wire that $WIRES names: who dies, stands still or disagrees is named on
# all hosts, in the times that hold on one. NODES=4 PER_NODE=2, by hand: the same over four hosts.
. "$(dirname "$0")/nodes_lib.sh"
: "${COLCHECK:?set COLCHECK to colcheck}" "${WIRES:?set WIRES to gloo, ucx, or both}"
: "${NODES:=2}" "${PER_NODE:=2}"
make_hosts "$NODES"

# What ranks take for their host: network, name, boot id and /dev/shm. But their pids are those of this test, which sends
# signals there, and so is /proc.
for number in $(seq "$NODES"); do
  mkdir "$hosts/n$number/shm"
  setpriv --pdeathsig KILL nsenter --target "$(host_pid n$number)" --net --uts -- unshare --mount bash -c '
    mount --bind "$0/boot_id" /proc/sys/kernel/random/boot_id && mount --bind "$0/shm" /dev/shm && : >"$0/drills"
    exec sleep infinity' "$hosts/n$number" &
  echo $! >"$hosts/n$number/keeper_of_drills"
  disown
  wait_until 10 "host n$number for drills" test -e "$hosts/n$number/drills"
done
starter=$work/on_its_host
cat >"$starter" <<SCRIPT
#!/bin/bash
keeper=\$(<"$hosts/n\$((\$1 / \$(<"$work/per_node") + 1))/keeper_of_drills")
shift
exec nsenter --target "\$keeper" --net --uts --mount -- "\$@"
SCRIPT
chmod +x "$starter"
mkdir "$work/drills"  # the same on all hosts, which $TMPDIR is not

# drills ARGUMENT…: over the backend $1 alone.
drills() {
  echo "$PER_NODE" >"$work/per_node"
  TMPDIR=$work/drills timeout 110 "$COLCHECK" --faults --fault-start "$starter" --np $((NODES * PER_NODE)) --device cpu --seed 1 --backend "$@" \
    >"$out" 2>"$err" || fail "exit code $? from colcheck --backend $*"
  expect_in "$out" '^[1-9][0-9,]* cases passed, 0 failed, 0 skipped'
  tail -n 1 "$out"
}

# The mismatches are found above the wire: of these, one kind. And a few of the algorithms in which a rank dies.
declare -A backend_over=([gloo]=hosts [ucx]=hosts_ucx)
skipped=killed,mismatch_op,mismatch_count,mismatch_dtype,mismatch_root,mismatch_reduce_op
# UCX itself ends a process that has no descriptor left when its worker is first woken.
declare -A skipped_over=([gloo]=$skipped [ucx]=$skipped,descriptor_limit)
for wire in $WIRES; do
  drills "${backend_over[$wire]}" --skip "${skipped_over[$wire]}"
  drills "${backend_over[$wire]}" --only killed --algo ring,linear
  left=$(find "$work/drills" "$hosts"/n?/shm -mindepth 1)
  [ -z "$left" ] || fail "files left: $left"
  nothing_left
done
# A rank of one host waits for a rank of the other, which waits in a group of its own for the one that hangs.
NODES=2 PER_NODE=4 drills hosts --only hung
