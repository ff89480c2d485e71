#!/bin/bash
# An ssh that ends with 0: it has started nothing, which is said soon by the host's name, or it has gone to the
# background, and the job runs.
. "$(dirname "$0")/lib.sh"

# fake_ssh NAME TEXT: a program for --ssh. In TEXT, $host and $command are what ssh gets, and $input is a descriptor of
# its input, which a command in the background does not have by itself.
fake_ssh() {
  {
    printf '#!/bin/bash\nexec {input}<&0\nhost=$1 command=$2\n'
    echo "export TMPDIR='$work/hosts/'\$host; mkdir -p \"\$TMPDIR\"" # of that host
    echo "$2"
  } >"$work/$1"
  chmod +x "$work/$1"
}
no_file() { [ -z "$(ls -A "$TMPDIR")" ] && [ -z "$(find "$work/hosts" -mindepth 2)" ]; }
mkfifo "$work/go"
fake_ssh ends 'exit 0'
fake_ssh talks 'echo "Welcome to $host"'
fake_ssh without_input 'sh -c "$command" </dev/null &'
fake_ssh holds 'sleep 60 <&$input >/dev/null 2>&1 &'
fake_ssh background 'sh -c "$command" <&$input &'
waits="read -r <'$work/go'" says="echo \$\$ >'$work/late.pid'"
fake_ssh late "($waits; exec sh -c \"\$command\") <&\$input & $says"
# It has read the job, a line and a frame with its length before it, and nobody reads on.
fake_ssh detached "read -r version; { echo \"\$version\"; head -c 4; } >'$work/job'
  bytes=\$((16#\$(tail -c 4 '$work/job' | od -An -tx1 | tr -d ' ')))
  head -c \$bytes >>'$work/job'; exec </dev/null {input}<&-
  ($waits; exec sh -c \"\$command\") < <(cat '$work/job'; exec sleep 60 2>/dev/null) & $says"
fake_ssh one_ends "[ \$host = b.example ] || exec '$work/background' \"\$@\""

in_vain() { # SSH HOSTS HOST [WORDS]
  expect_exit 125 "$COLRUN" --ssh "$work/$1" --host "$2" touch "$work/started" </dev/null
  expect_in "$err" "^colrun: host $3: its ssh ${4:-ended with 0 and started nothing there}"
  expect_in "$err" "\`$work/$1 $3 echo here\`"
  [ ! -e "$work/started" ] || fail "a rank was started"
  nothing_left_soon
}
in_vain ends far.example:2 far.example
in_vain ends localhost:1,far.example:2 far.example
in_vain one_ends a.example:1,b.example:1 b.example
in_vain talks far.example:2 far.example
in_vain without_input far.example:2 far.example
in_vain holds far.example:2 far.example \
  'went to the background, and no colrun came from there within 5 s; its input is still read'

# expect_three COMMAND…: succeeds, and three ranks say their numbers.
expect_three() {
  expect_exit 0 "$@" </dev/null
  [ "$(sort "$out" | paste -sd,)" = "0/3,1/3,2/3" ] || fail "not three ranks"
  nothing_left_soon
}
place='echo $COL_RANK/$COL_WORLD_SIZE'
expect_three "$COLRUN" --ssh "$work/background" --host far.example:3 sh -c "$place"
# The rank of this host ends before those of the other one; what it leaves is ended then, and what ssh has left is not.
expect_three "$COLRUN" --ssh "$work/background" --host localhost:1,far.example:2 bash -c "$(declare -f "${for_ranks[@]}")"'
  [ $COL_RANK = 0 ] || await ended "$0/left"
  [ $COL_RANK != 0 ] || { sleep 60 >/dev/null 2>&1 & echo $! >"$0/left.new"; mv "$0/left.new" "$0/left"; }
  '"$place" "$work"
expect_exit 7 "$COLRUN" --ssh "$work/background" --host localhost:1,far.example:2 sh -c '
  [ $COL_RANK = 2 ] || exec sleep 60; exit 7' </dev/null
expect_in "$err" '^colrun: rank 2 .* exited with code 7'
nothing_left_soon
# Its launcher comes only when ssh has ended.
for ssh in late detached; do
  for hosts in far.example:3 localhost:1,far.example:2; do
    rm -f "$work/late.pid"
    (wait_until 20 "ssh has been started" test -s "$work/late.pid"
      wait_until 20 "ssh has ended" gone "$(<"$work/late.pid")"
      echo >"$work/go") &
    expect_three "$COLRUN" --ssh "$work/$ssh" --host $hosts sh -c "$place"
  done
done
# The same before the next attempt.
rm "$work/left"
expect_exit 0 "$COLRUN" --ssh "$work/background" --max-restarts 1 --host localhost:1,far.example:1 bash -c '
  if [ -e "$0/left" ]; then
    [ $COL_RANK = 1 ] || ! kill -0 "$(<"$0/left")"
    exit
  fi
  [ $COL_RANK = 0 ] || exec sleep 60
  setsid sleep 60 >/dev/null 2>&1 &
  echo $! >"$0/left.new" && mv "$0/left.new" "$0/left"
  exit 7' "$work" </dev/null
expect_in "$err" '^colrun: .*starting again'
nothing_left_soon
# colrun is killed, and with it all that it has started on this host: so the other one, which is this one, has nobody who
# removes its files.
"$COLRUN" --ssh "$work/background" --host far.example:2 sh -c ': >"$0/ready.$COL_RANK"; exec sleep 60' "$work" \
  </dev/null 2>"$err" &
started=$!
wait_until 20 "ranks" test -e "$work/ready.0" -a -e "$work/ready.1"
kill -KILL $started
expect_status 137 $started 2>/dev/null
wait_until 10 "processes left" no_process
