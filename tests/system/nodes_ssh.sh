#!/bin/bash
# colrun --host and --hostfile: one command starts the ranks of all hosts over ssh, shows what they say, and ends them.
. "$(dirname "$0")/ssh_lib.sh"
make_hosts 3
serve_ssh

# from_n1 CODE ARGUMENT…: colrun on n1.
from_n1() {
  local expected=$1
  shift
  expect_exit "$expected" on n1 "$COLRUN" --ssh "$ssh_command" "$@"
}
place='echo $COL_RANK/$COL_WORLD_SIZE $COL_LOCAL_RANK/$COL_LOCAL_WORLD_SIZE $COL_NODE_RANK/$COL_NNODES $(hostname)'

# Ranks go to the hosts in their order, whether colrun's own host is among them or not.
from_n1 0 --host n1:2,n2:1 sh -c "$place" </dev/null
sort "$out" | diff <(printf '%s\n' '0/3 0/2 0/2 n1' '1/3 1/2 0/2 n1' '2/3 0/1 1/2 n2') - >&2 || fail "n1 and n2"
nothing_left
from_n1 0 --host "n3:1,root@$(host_address n2):2" sh -c "$place" </dev/null
sort "$out" | diff <(printf '%s\n' '0/3 0/1 0/2 n3' '1/3 0/2 1/2 n2' '2/3 1/2 1/2 n2') - >&2 || fail "n3 and n2"
nothing_left
printf '%s\n' '# two hosts' '' 'n2 slots=1' 'n3' >"$work/hostfile"
from_n1 0 --hostfile "$work/hostfile" -n 2 sh -c "$place" </dev/null
sort "$out" | diff <(printf '%s\n' '0/3 0/1 0/2 n2' '1/3 0/2 1/2 n3' '2/3 1/2 1/2 n3') - >&2 || fail "the hostfile"
nothing_left
# So it is for a user whose shell says something at every login.
expect_exit 0 on n1 "$COLRUN" --ssh "$ssh_command -p 2222" --host n2:1,n3:1 sh -c "$place" </dev/null
expect_in "$out" '^0/2 0/1 0/2 n2$'
expect_in "$out" '^1/2 0/1 1/2 n3$'
nothing_left

# Lines of all ranks arrive, whole, labelled and in each rank's order; stderr apart from stdout.
from_n1 0 --label --host n1:1,n2:2,n3:1 bash -c '
  pad=$(printf "%0150d" 0)
  for ((i = 0; i < 3000; ++i)); do echo "line $i of $COL_RANK $pad"; done
  echo "error of $COL_RANK" >&2
  printf "no end"' </dev/null
pad=$(printf '%0150d' 0)
expect_lines "$out" 12004
for rank in 0 1 2 3; do
  grep "^\[$rank\] " "$out" |
    cmp - <(for ((i = 0; i < 3000; ++i)); do echo "[$rank] line $i of $rank $pad"; done; echo "[$rank] no end") ||
    fail "lines of rank $rank"
done
grep '^\[' "$err" | sort | cmp - <(for rank in 0 1 2 3; do echo "[$rank] error of $rank"; done) || fail "stderr"
nothing_left

# Lines that come in parts are whole in a pipe. A terminal shows the part there is, though each host's launcher writes to a pipe.
# The next part comes when a later word on the other stream has been passed on.
from_n1 0 --host n1:1,n2:2,n3:1 bash -c "$(declare -f "${for_ranks[@]}")"'
  for part in AB CD EF; do
    printf $part; echo "$part of $COL_RANK" >&2; await grep -q "$part of $COL_RANK" "$0"
  done; printf "\nend"' "$err" </dev/null
sort "$out" | cmp - <(printf '%s\n' ABCDEF ABCDEF ABCDEF ABCDEF end end end end) || fail "torn lines"
nothing_left
from_n1 0 --host n2:1 printf 'no end' </dev/null
printf 'no end' | cmp - "$out" || fail "the only rank's bytes"
nothing_left
if type script >/dev/null 2>&1; then
  mkfifo "$work/keys"
  printf '#!/bin/sh\n[ $COL_RANK = 1 ] || exit 0\nprintf "name? "; read -r name; echo "hello $name"\n' >"$work/asks"
  chmod +x "$work/asks"
  on n1 timeout 30 script -qefc "stty -echo; $COLRUN --ssh '$ssh_command' --stdin 1 --host n1:1,n2:1 $work/asks" "$out" \
    <"$work/keys" >/dev/null 2>"$err" &
  pid=$!
  exec 4>"$work/keys"
  wait_until 20 "the prompt of a rank on n2" grep -q 'name? ' "$out"
  echo you >&4
  expect_status 0 $pid
  exec 4>&-
  expect_in "$out" '^name\? hello you'
  nothing_left
fi

# With several programs, -n of each is for every host.
from_n1 0 --host n3,n2 -n 1 sh -c "${place/echo/echo one}" : -n 2 sh -c "${place/echo/echo two}" </dev/null
sort "$out" | diff <(printf '%s\n' 'one 0/6 0/3 0/2 n3' 'one 3/6 0/3 1/2 n2' 'two 1/6 1/3 0/2 n3' 'two 2/6 2/3 0/2 n3' \
  'two 4/6 1/3 1/2 n2' 'two 5/6 2/3 1/2 n2') - >&2 || fail "several programs"
nothing_left

# A debugger runs on the host of the rank that it is for, with what is typed.
printf '#!/bin/sh\nread -r line\necho "rank $COL_RANK on $(hostname): $* ($line)"\n' >"$work/debugger"
chmod +x "$work/debugger"
from_n1 0 --debugger "$work/debugger --args" --debug-ranks 1 --host n1:1,n2:1,n3:1 echo x < <(echo typed)
sort "$out" | diff <(printf '%s\n' "rank 1 on n2: --args $(type -P echo) x (typed)" x x) - >&2 || fail "the debugger on n2"
from_n1 0 --debugger "$work/debugger" --debug-ranks 0,2 --host n1:1,n2:1,n3:1 echo x </dev/null
sort "$out" | diff <(printf '%s\n' "rank 0 on n1: $(type -P echo) x ()" "rank 2 on n3: $(type -P echo) x ()" x) - >&2 ||
  fail "debuggers on n1 and n3"
nothing_left

# Input goes to rank 0 or another one, wherever that is; the others read an empty file.
head -c 20000000 /dev/urandom >"$work/input"
input_sum=$(sha256sum <"$work/input")
empty_sum=$(sha256sum </dev/null)
# expect_readers RANK…: these have read all, the others of 4 nothing.
expect_readers() {
  local rank sum
  for rank in 0 1 2 3; do
    sum=$empty_sum
    [[ " $* " != *" $rank "* ]] || sum=$input_sum
    expect_in "$out" "^$rank $sum\$"
  done
  nothing_left
}
summing='echo "$COL_RANK $(sha256sum)"'
from_n1 0 --host n2:1,n1:3 sh -c "$summing" < <(cat "$work/input")
expect_readers 0
from_n1 0 --stdin 3 --host n1:1,n2:1,n3:2 sh -c "$summing" <"$work/input"
expect_readers 3
from_n1 0 --stdin 1 --host n2,n3 -n 1 sh -c "$summing" : -n 1 sh -c "$summing" <"$work/input"
expect_readers 1
from_n1 0 --stdin all --host n2:2,n3:2 sh -c "$summing" < <(cat "$work/input")
expect_readers 0 1 2 3
from_n1 0 --stdin all --host n3:1,n1:2,n2:1 sh -c "$summing" <"$work/input"
expect_readers 0 1 2 3
from_n1 0 --stdin none --host n2:2,n3:2 sh -c "$summing" <"$work/input"
expect_readers
from_n1 0 --pty --stdin all --host n1:1,n2:1 sh -c 'read -r line; echo "$COL_RANK got $line"' < <(echo word)
sort "$out" | tr -d '\r' | diff <(printf '%s\n' '0 got word' '1 got word') - >&2 || fail "input to terminals"
nothing_left

# A reader that has enough does not keep the others from the rest, also where ranks may start again.
for restarts in 0 1; do
  from_n1 0 --max-restarts $restarts --stdin all --host n1:1,n2:1,n3:2 sh -c '
    case $COL_RANK in 1 | 2) head -c 10 >/dev/null ;; *) '"$summing"' ;; esac' <"$work/input"
  expect_in "$out" "^0 $input_sum\$"
  expect_in "$out" "^3 $input_sum\$"
  nothing_left
done
# Nor does one that has closed its input and works on. The writer is gone when the job is.
mkfifo "$work/go"
(yes >&9; : >"$work/writer_ended") 9> >(
  exec on n1 "$COLRUN" --ssh "$ssh_command" --host n2:1,n1:1 sh -c '
    [ "$COL_RANK" = 0 ] || exit 0
    read -r line; exec <&-; : >"$0/closed"; read -r line <"$0/go"; echo "went on"' "$work" >"$out" 2>"$err") 2>/dev/null &
writer=$!
wait_until 20 "rank 0 has closed its input" test -e "$work/closed"
echo go >"$work/go"
wait_until 20 "the writer noticed" gone $writer
wait_until 20 "the end" eval '[ "$(cat "$out")" = "went on" ]'
nothing_left_soon

# Ranks that start again read on.
mkfifo "$work/typed"
{ echo first; wait_until 20 "the second start" files "$work/again" 2; echo second; } >"$work/typed" &
mkdir "$work/again"
from_n1 0 --max-restarts 1 --stdin all --host n1:1,n2:1 sh -c '
  [ "$COL_RESTART_COUNT" = 0 ] || : >"$0/$COL_RANK"
  read -r line; echo "$COL_RANK got $line"
  [ "$COL_RESTART_COUNT" = 1 ] || { [ "$COL_RANK" = 0 ] && exec sleep 60; exit 3; }' "$work/again" <"$work/typed"
grep second "$out" | sort | diff <(printf '%s\n' '0 got second' '1 got second') - >&2 || fail "input of the second start"
nothing_left

# colrun is killed while its ranks leave their input where it is: they end.
exec 7< <(exec yes)
writer=$!
on n1 "$COLRUN" --ssh "$ssh_command" --stdin all --host n2:1,n3:1 bash -c ': >"$0/full.$COL_RANK"; sleep 300' "$work" \
  <&7 7<&- >"$work/n1.out" 2>"$work/n1.err" &
started=$!
exec 7<&-
wait_until 20 "ranks" test -e "$work/full.0" -a -e "$work/full.1"
wait_until 20 "input on its way" eval '[ "$(sed -n "s/^wchar: //p" /proc/$writer/io)" -gt 1000000 ]'
kill -KILL "$(pgrep -P $started)"
expect_status 137 $started
nothing_left_soon
wait_until 20 "the writer noticed" gone "$writer"

# Variables of -x arrive, whatever is in them.
odd="it's \"odd\" \$HOME \\ and
two lines"
COPIED=$odd from_n1 0 --host n1:1,n2:1 -x "GIVEN=$odd" -x COPIED sh -c '
  [ "$GIVEN" = "$COPIED" ] && printf "%s" "$GIVEN" | cksum' </dev/null
[ "$(sort -u "$out")" = "$(printf '%s' "$odd" | cksum)" ] || fail "a variable is another one"
# Arguments too.
from_n1 0 --host n2:1 sh -c 'printf "%s" "$1" | cksum' - "$odd" </dev/null
[ "$(cat "$out")" = "$(printf '%s' "$odd" | cksum)" ] || fail "an argument is another one"

# A host that cannot be reached, that does not exist, or that lets nobody in: 125 by its name, in ssh's own words.
from_n1 125 --host n1:1,10.77.0.9:1 touch "$work/started" </dev/null
expect_in "$err" '^colrun: .*10\.77\.0\.9'
expect_in "$err" 'No route to host|timed out'
from_n1 125 --host n9:1,n2:1 touch "$work/started" </dev/null
expect_in "$err" '^colrun: .*n9'
expect_in "$err" 'Could not resolve'
stranger="ssh -F none -o BatchMode=yes -o UserKnownHostsFile=$ssh/known_hosts"
expect_exit 125 on n1 "$COLRUN" --ssh "$stranger" --host n1:1,n2:1 touch "$work/started" </dev/null
expect_in "$err" '^colrun: .*n2'
expect_in "$err" 'Permission denied'
expect_exit 125 on n1 "$COLRUN" --ssh no-such-ssh --host n2:1 touch "$work/started" </dev/null
expect_in "$err" '^colrun: .*no-such-ssh'
# One where ssh goes well, and starts nothing: it reads no job, or another command is forced there.
expect_exit 125 on n1 "$COLRUN" --ssh "$ssh_command -f" --host n1:1,n2:1 touch "$work/started" </dev/null
expect_in "$err" '^colrun: host n2: its ssh ended with 0 and started nothing there'
on n2 "$server" -p 2223 -f "$ssh/n2.conf" -E "$ssh/n2.log" -o 'ForceCommand true' || fail "the third sshd does not start"
expect_exit 125 on n1 "$COLRUN" --ssh "$ssh_command -p 2223" --host n1:1,n2:1 touch "$work/started" </dev/null
expect_in "$err" '^colrun: host n2: its ssh ended with 0 and started nothing there'
[ ! -e "$work/started" ] || fail "ranks were started although a host was missing"
nothing_left_soon

# A program that one host does not have.
mkdir "$hosts/n1/tmp/only" "$hosts/n2/tmp/only"
for host in n1 n2; do printf '#!/bin/sh\nexec sleep 60\n' >"$hosts/$host/tmp/only/program"; done
chmod +x "$hosts"/n[12]/tmp/only/program
from_n1 127 --host n1:1,n2:1,n3:1 "$TMPDIR/only/program" </dev/null
expect_in "$err" "^colrun: .*n3"
expect_in "$err" "$TMPDIR/only/program"
chmod -x "$hosts/n2/tmp/only/program"
from_n1 126 --host n1:1,n2:1 "$TMPDIR/only/program" </dev/null
rm -r "$hosts"/n[12]/tmp/only
nothing_left

# A colrun that the other host has neither at the same place nor on its PATH.
library=$(ldd "$COLRUN" 2>/dev/null | sed -n 's/.*libcol\.so.* => \(.*\/\)libcol\.so.*/\1/p')
cp "$COLRUN" "$hosts/n1/tmp/colrun"
expect_exit 125 on n1 env LD_LIBRARY_PATH="$library" "$TMPDIR/colrun" --ssh "$ssh_command" --host n1:1,n2:1 true \
  </dev/null
expect_in "$err" '^colrun: .*n2'
expect_in "$err" 'PATH|install'
rm "$hosts/n1/tmp/colrun"
nothing_left

# waiting_ranks: ranks on n1, n2 and n3 that wait for their end, and what they started, too.
waiting_ranks() {
  rm -f "$work"/ready.* "$work"/int.*
  start_node n1 --ssh "$ssh_command" --host n1:1,n2:2,n3:1 bash -c '
    trap "echo interrupted; : >$0/int.$COL_RANK; exit 0" INT
    setsid sleep 300 & : >"$0/ready.$COL_RANK"; sleep 300 & wait' "$work"
  wait_until 20 "ranks" test -e "$work/ready.0" -a -e "$work/ready.1" -a -e "$work/ready.2" -a -e "$work/ready.3"
}

# ^C ends all, each by its own handler.
waiting_ranks
kill -INT "${node_inner[n1]}"
expect_node 130 n1
for rank in 0 1 2 3; do [ -e "$work/int.$rank" ] || fail "rank $rank did not see SIGINT"; done
[ "$(grep -c '^interrupted$' "$work/n1.out")" -eq 4 ] || fail "not all last words"
nothing_left_soon

# colrun itself is killed.
waiting_ranks
kill -KILL "${node_inner[n1]}"
expect_node 137 n1
nothing_left_soon

# The connection to one host is: that host is lost.
waiting_ranks
ssh_to_n2() {
  local pid
  for pid in $(tagged); do
    env -u COLTEST_TAG grep -qsx ssh "/proc/$pid/comm" || continue
    env -u COLTEST_TAG grep -qsz '^n2$' "/proc/$pid/cmdline" && echo "$pid"
  done
}
pid=$(ssh_to_n2)
[ -n "$pid" ] || fail "no ssh to kill"
# shellcheck disable=SC2086 # one or more
kill -KILL $pid
expect_node 125 n1 20
expect_in "$work/n1.err" '^colrun: .*n2'
nothing_left_soon

# So it is when its colrun is killed.
waiting_ranks
for pid in $(processes_on n2); do
  ! grep -qsz -- '^--agent$' "/proc/$pid/cmdline" || kill -KILL "$pid"
done
expect_node 125 n1 20
expect_in "$work/n1.err" '^colrun: .*n2'
nothing_left_soon

# A job that hangs: the launcher, which has no ranks of its own, asks those that it has started.
export COL_TIMEOUT=120s
mkdir "$work/there"
start_node n1 --ssh "$ssh_command" --host n2:2,n3:1 "$PLANTED_HANG" barrier "$work/there"
wait_until 30 "the ranks are there" files "$work/there" 3
wait_until 20 "it is stuck" eval 'on n1 "$COLJOB" why --after 300ms >"$out" 2>"$err"; [ $? -eq 1 ]'
expect_in "$out" 'rank 2 \(pid [0-9]+, host n3\) has not called it'
on n1 "$COLJOB" ps --after 300ms >"$out"
expect_in "$out" ' 3 +[0-9.]+ s +stuck '
shows_all() { on n1 "$COLJOB" top >"$out" && [ "$(grep -cE '^ +([01] +n2|2 +n3) +[0-9]+ +[a-z]' "$out")" = 3 ]; }
wait_until 20 "a view of all" shows_all
expect_in "$out" ' +3 ranks on 2 hosts '
kill -QUIT "${node_inner[n1]}"
wait_until 10 "an answer" grep -qE '^colrun: ranks 0-1 .*rank 2 .*host n3\) has not called it' "$work/n1.err"
kill -TERM "${node_inner[n1]}"
expect_node 143 n1
nothing_left_soon
