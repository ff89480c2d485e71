#!/bin/bash
# coljob, SIGQUIT and --report-hang see the ranks of all hosts of a job: hangs that are planted across two hosts, and a
# host that does not answer.
. "$(dirname "$0")/nodes_lib.sh"
: "${COLJOB:?set COLJOB to the coljob program}" "${PLANTED_HANG:?set PLANTED_HANG to the planted_hang program}"
make_hosts 2
export COL_TIMEOUT=120s
table=$("$PLANTED_HANG" --list)

# begin NAME [OPTION…]: ranks 0 and 1 on n1, rank 2 on n2.
begin() {
  local name=$1
  shift
  rm -rf "$work/there"
  mkdir "$work/there"
  start_node n1 "$@" --nnodes 2 --node-rank 0 --rdzv-endpoint n1:29400 -n 2 "$PLANTED_HANG" "$name" "$work/there"
  start_node n2 "$@" --nnodes 2 --node-rank 1 --rdzv-endpoint n1:29400 -n 1 "$PLANTED_HANG" "$name" "$work/there"
  wait_until 30 "the ranks of $name are there" files "$work/there" 3
}
stop() {
  kill -TERM "${node_inner[n1]}"
  expect_node 143 n1
  expect_node 143 n2
}
blamed() { tr -d ' \n' <"$out" | sed -E 's/.*"culprits":\[([^]]*)\].*/\1/' | tr , '\n' | sort -n | paste -sd,; }
# is_right HOST: what coljob says there is what was planted.
is_right() {
  code=0
  on "$1" "$COLJOB" why --after 500ms --json >"$out" 2>"$err" || code=$?
  [ "$code" -eq 1 ] && grep -qF "\"cause\": \"$cause\"" "$out" && grep -qE "\"sentence\": \".*$words" "$out" &&
    [ "$(blamed)" = "$culprits" ]
}

# ---- Hangs, asked from either host, of which some are drawn anew each time
# unwaited_alltoall is none here: what rank 2 has for the other host is on its way as soon as it starts, and nobody waits.
drawn=$(cut -f1 <<<"$table" | grep -vx unwaited_alltoall | shuf -n 4)
names=$(printf '%s\n' barrier wrong_tag stopped_before unwaited_allreduce circle_of_sends not_joined "$drawn")
for name in $(sort -u <<<"$names"); do
  echo "hang: $name"
  IFS=$'\t' read -r _ cause culprits words < <(grep -P "^$name\t" <<<"$table")
  begin "$name"
  wait_until 20 "a right answer for $name" is_right n1
  wait_until 20 "the same answer on n2" is_right n2
  stop
done

# ---- Its commands, from the host that is not the first
begin barrier
wait_until 20 "it is stuck" eval 'on n2 "$COLJOB" why --after 300ms >"$out" 2>"$err"; [ $? -eq 1 ]'
expect_in "$out" "^ranks 0-1 have waited for .* in barrier #1 of group 'default': rank 2 \\(pid [0-9]+, host n2\\) has not called it"
on n2 "$COLJOB" why >"$out" 2>"$err"
on n2 "$COLJOB" ps --after 300ms >"$out" || fail "ps"
expect_in "$out" '^[-0-9a-f]+ +3 +[0-9.]+ s +stuck +planted_hang barrier'
on n2 "$COLJOB" dump -o "$work/dump.json" || fail "dump"
expect_exit 1 "$COLJOB" why --after 300ms "$work/dump.json"
expect_in "$out" 'rank 2 \(pid [0-9]+, host n2\) has not called it'
on n2 "$COLJOB" stacks >"$out" || fail "stacks"
for rank in 'ranks? 0' 'rank 2|ranks 0-2'; do expect_in "$out" "^coljob: stack of ($rank)"; done
[ "$(stat -c %a "/proc/$(host_pid n1)/root$TMPDIR"/col-*/ask)" = 700 ] ||
  [ "$(stat -c %a "/proc/$(host_pid n1)/root$TMPDIR"/col-*)" = 700 ] || fail "anybody may ask"

# ---- SIGQUIT to either launcher
for host in n2 n1; do
  kill -QUIT "${node_inner[$host]}"
  wait_until 10 "an answer on $host" grep -qE '^colrun: ranks 0-1 have waited for .*: rank 2 .*host n2\) has not called it' "$work/$host.err"
done

# ---- A launcher that does not answer, and whose ranks are stopped with it: said as long as it is not known to be lost
signal_host STOP n2
on n1 "$COLJOB" why --after 300ms >"$out" 2>"$err"
[ $? -eq 1 ] || fail "a silent host: $(cat "$out" "$err")"
expect_in "$out" "^ranks 0-1 have waited for .* in barrier #1 .*: host n2 \\(node 1, rank 2\\) does not answer: dead or frozen, or cut off"
expect_in "$out" '^host n2 \(node 1, rank 2\) has not answered: its ranks are not shown'
signal_host CONT n2
wait_until 10 "n2 answers again" eval 'on n1 "$COLJOB" why >"$out" 2>&1; grep -q "rank 2 (pid" "$out"'
# The launcher that is asked: then its page says what there is on its host.
watcher=$(pgrep -x --ns "$(host_pid n1)" --nslist pid col-watcher)
kill -STOP "$watcher"
on n1 "$COLJOB" why >"$out" 2>"$err"
expect_in "$err" '^coljob: job .*: its launcher on this host does not answer, so other hosts are not seen'
expect_in "$out" '^ranks 0-1 have waited for .* in barrier #1'
kill -CONT "$watcher"
stop

# ---- --report-hang: said once, by the first node, about all of them
begin never_sent --report-hang 400ms
wait_until 20 "a report" grep -qE '^colrun: rank 1 has waited for .* from rank 0 ' "$work/n1.err"
stop
expect_not_in "$work/n2.err" 'has waited for'
begin barrier --report-hang 400ms
wait_until 20 "a report" grep -qE 'rank 2 .*host n2\) has not called it' "$work/n1.err"
stop
nothing_left
