#!/bin/bash
# Too few processes allowed: 125, one line that says what to do, and the ranks that were started are gone.
. "$(dirname "$0")/lib.sh"

# The limit does not bind root, and the processes of other users come and go: one is needed who has those of this test alone.
[ "$(id -u)" -eq 0 ] || { echo "only root can take another user's id"; exit 77; }
user=$((20000 + $$ % 40000))
as_user=(setpriv --reuid=$user --regid=$user --clear-groups)
"${as_user[@]}" true 2>/dev/null || { echo "setpriv cannot take another user's id"; exit 77; }
chmod 755 "$work"
chmod 777 "$TMPDIR"
"${as_user[@]}" test -x "$COLRUN" || { echo "another user cannot run $COLRUN"; exit 77; }
mkdir -m 777 "$work/ranks"
limited='ulimit -u "$1"; shift; exec "$@"'
remembers='echo $$ >"$0/$RANK"; exec sleep 60'
# suffices RANKS COMMAND…: all ranks are there at a time, before the first of them ends.
meets=(bash -c 'meet "$0"' "$work/there")
suffices() {
  gather "$work/there" "$1"
  expect_exit 0 "${@:2}" "${meets[@]}"
}
in_vain() { # COMMAND…
  expect_exit 125 "$@"
  expect_lines "$err" 1
}
named_number() { sed -E 's/.*raise the limit to ([0-9]+) .*/\1/' "$err"; }
nobody_is_there() {
  for file in "$work"/ranks/*; do
    [ -s "$file" ] && ! gone "$(cat "$file")" && fail "rank $(basename "$file") was left running"
  done
  nothing_left
}
# Nothing is started, and the number that is named suffices.
for ranks in 1 16 40; do
  in_vain "${as_user[@]}" bash -c "$limited" - $(((ranks < 12 ? ranks : 12) + 1)) "$COLRUN" -n $ranks \
    sh -c "$remembers" "$work/ranks"
  expect_in "$err" "^colrun: $ranks ranks? needs? $((ranks + 1)) processes, but this user may have [0-9]+ and has [0-9]+ now; raise the limit to [0-9]+ \\(ulimit -u\\)"
  [ -z "$(ls "$work/ranks")" ] || fail "ranks were started"
  number=$(named_number)
  suffices $ranks "${as_user[@]}" bash -c "$limited" - "$number" "$COLRUN" -n $ranks
  in_vain "${as_user[@]}" bash -c "$limited" - $((number - 1)) "$COLRUN" -n $ranks true
done
nobody_is_there
# The process where the nodes meet, and the thread of its store, need room as well. Another user's node joins.
nodes=(--nnodes 2 --rdzv-endpoint "localhost:$((20000 + RANDOM % 10000))" --rdzv-timeout 20s -n 2)
in_vain "${as_user[@]}" bash -c "$limited" - 2 "$COLRUN" "${nodes[@]}" true
expect_in "$err" '^colrun: 2 ranks need 5 processes'
number=$(named_number)
in_vain "${as_user[@]}" bash -c "$limited" - $((number - 1)) "$COLRUN" "${nodes[@]}" true
(wait_until 20 "a meeting" pgrep -u $user -x col-meeting && exec "$COLRUN" "${nodes[@]}" "${meets[@]}") >"$work/other" 2>&1 &
other=$!
suffices 4 "${as_user[@]}" bash -c "$limited" - "$number" "$COLRUN" "${nodes[@]}"
expect_status 0 $other
nothing_left
# Root in a user namespace is no root outside of it, where the kernel counts.
if "${as_user[@]}" unshare -Ur true 2>/dev/null; then
  in_vain "${as_user[@]}" bash -c "$limited" - 5 unshare -Ur "$COLRUN" -n 16 true
  expect_in "$err" '^colrun: 16 ranks need 17 processes, but this user may have '
  suffices 16 "${as_user[@]}" bash -c "$limited" - "$(named_number)" unshare -Ur "$COLRUN" -n 16
  nothing_left
fi
# Where there is no room for even one.
in_vain "${as_user[@]}" bash -c "$limited" - 1 "$COLRUN" -n 2 true
expect_in "$err" '^colrun: 2 ranks need 3 processes'
nothing_left

# It cannot be known before, as without /proc: then what was started is ended again, and no rank takes the room of one
# that has ended.
unshare -m mount -t tmpfs none /proc 2>/dev/null || exit 0
without_proc=(unshare -m bash -c 'mount -t tmpfs none /proc; exec "$@"' - "${as_user[@]}")
in_vain "${without_proc[@]}" bash -c "$limited" - 12 "$COLRUN" -n 40 sh -c "$remembers" "$work/ranks"
expect_in "$err" '^colrun: cannot start rank [0-9]+: this user may have 12 processes; raise the limit to [0-9]+ \(ulimit -u\)'
nobody_is_there
