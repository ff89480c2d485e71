#!/bin/bash
# A job of one host where the loopback interface has IPv6 alone, IPv4 alone, or is down.
. "$(dirname "$0")/lib.sh"
: "${HELLO:?set HELLO to the hello program}"

command -v ip >/dev/null || { echo "no ip (apt-get install iproute2)"; exit 77; }
network=(unshare -n)
[ "$(id -u)" -eq 0 ] || network=(unshare -rn)
"${network[@]}" ip link set lo up 2>/dev/null || { echo "no network of its own here"; exit 77; }
"${network[@]}" sh -c 'ip link set lo up && ip -6 addr show dev lo | grep -q ::1' || { echo "no IPv6 here"; exit 77; }

# with LINES COMMAND…: on a network that these commands have made.
with() {
  local lines=$1
  shift
  "${network[@]}" sh -c "set -e; $lines"'; exec "$@"' - "$@"
}
six='ip link set lo up; ip addr del 127.0.0.1/8 dev lo'
four='ip link set lo up; ip addr del ::1/128 dev lo'
none='ip link set lo down'
# An ssh to this host, with a directory of its own.
mkdir "$work/other"
printf '#!/bin/sh\nTMPDIR=%s exec sh -c "$2"\n' "$work/other" >"$work/there"
chmod +x "$work/there"

works() { # LINES MASTER_ADDR
  local backend
  with "$1" timeout 30 "$COLRUN" -n 2 sh -c 'echo $MASTER_ADDR' >"$out" 2>"$err" || fail "no job by '$1'"
  [ "$(sort -u "$out")" = "$2" ] || fail "another MASTER_ADDR than $2"
  for backend in shm gloo auto; do
    COL_BACKEND=$backend with "$1" timeout 30 "$COLRUN" -n 2 "$HELLO" >"$out" 2>"$err" || fail "no $backend by '$1'"
    expect_lines "$out" 2
  done
  with "$1" timeout 30 "$COLRUN" --ssh "$work/there" --host localhost:1,far.example:1 "$HELLO" >"$out" 2>"$err" ||
    fail "no two hosts by '$1'"
  expect_lines "$out" 2
}
works "$six" ::1
works "$four" 127.0.0.1

# The nodes' port is that of another program.
with 'ip link set lo up' python3 - "$COLRUN" >"$out" 2>"$err" <<'P'
import socket, subprocess, sys
with socket.create_server(("127.0.0.1", 29555)):
    words = "-n 1 --nnodes 2 --rdzv-endpoint 127.0.0.1:29555 --rdzv-timeout 3s true"
    print(subprocess.run([sys.argv[1], *words.split()], stdin=subprocess.DEVNULL).returncode)
P
expect_in "$out" '^125$'
expect_lines "$err" 1
expect_in "$err" '^colrun: cannot join the job at 127.0.0.1:29555: .*name a free port by --rdzv-endpoint HOST:PORT'

# Memory is shared without any network.
with "$none" timeout 30 "$COLRUN" -n 2 "$HELLO" >"$out" 2>"$err"
code=$?
[ "$code" -eq 0 ] || [ "$code" -eq 125 ] || fail "status $code where the interface is down"
[ "$code" -eq 0 ] || expect_in "$err" '^colrun: cannot get a free port .*ip link set lo up'
COL_BACKEND=gloo with "$none" timeout 30 "$COLRUN" -n 2 "$HELLO" >"$out" 2>"$err" && fail "Gloo without a network"
expect_in "$err" 'ip link set lo up'
with "$none" timeout 30 "$COLRUN" --ssh "$work/there" --host localhost:1,far.example:1 true >"$out" 2>"$err"
expect_in "$err" '^colrun: cannot .*ip link set lo up'
nothing_left_soon
