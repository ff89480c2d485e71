# shellcheck shell=bash
# Several hosts on one machine, for tests of several nodes. Sourced instead of lib.sh:
#
#   . "$(dirname "$0")/nodes_lib.sh"
#   make_hosts 3                      # n1, n2 and n3
#   start_node n1 --nnodes 2 …        # colrun there, output in $work/n1.out and $work/n1.err
#   expect_exit 0 on n2 hostname
#
# A host is a set of namespaces: a network with one link, a host name, pids, a boot id, /dev/shm and $TMPDIR of its own.
# The rest of the file system is shared. Names are resolved as on a fresh Debian: a host's own name is 127.0.1.1 to
# itself. Hosts have no names outside of the test and die with it, by the kernel's hand: also when the test is killed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

hosts=$work/hosts
host_names=()
export HOSTS_OF_TEST=$hosts

skip() {
  echo "skipped: $*"
  exit 77
}

# Runs a command on a host: on HOST COMMAND…  A program, not a function, as `timeout` starts it. A shell lets what it
# starts in the background ignore SIGINT, and nsenter could not die of it as the command does.
mkdir "$work/bin" "$hosts"
cat >"$work/bin/on" <<'SCRIPT'
#!/bin/bash
host=$1
shift
processors=()
[ ! -e "$HOSTS_OF_TEST/$host/processors" ] || processors=(taskset --cpu-list "$(<"$HOSTS_OF_TEST/$host/processors")")
exec "${processors[@]}" env --default-signal=INT,QUIT nsenter --target "$(<"$HOSTS_OF_TEST/$host/pid")" --net --uts --mount --pid -- \
  env --chdir="$PWD" "$@"
SCRIPT
chmod +x "$work/bin/on"
PATH=$work/bin:$PATH

host_address() { echo "10.77.0.${1#n}"; }
host_pid() { cat "$hosts/$1/pid" 2>/dev/null; }
in_switch() { nsenter --target "$switch" --net -- "$@"; }

# What a test was that did not get to its end.
forget_killed_tests() {
  local owner
  for owner in "$(dirname "$work")"/coltest.*/owner; do
    [ -e "$owner" ] && ! kill -0 "$(<"$owner")" 2>/dev/null && rm -rf "$(dirname "$owner")"
  done
  echo $$ >"$work/owner.new"
  mv "$work/owner.new" "$work/owner"  # whole at once: a test beside this one reads it
}

need_hosts() {
  local program reason
  [ "$(id -u)" -eq 0 ] || skip "hosts of its own (network namespaces) need root"
  command -v ip >/dev/null || skip "no ip (apt-get install iproute2)"
  for program in unshare nsenter setpriv; do
    command -v $program >/dev/null || skip "no $program (apt-get install util-linux)"
  done
  reason=$(unshare --net --uts --mount --pid --fork --mount-proc bash -c '
    mount -t tmpfs tmpfs /dev/shm && hostname n1 && ip link add br0 type bridge &&
      ip link add eth0 type veth peer name eth1' 2>&1) || skip "no hosts of its own here: $reason"
}

# The first process of a host. It waits for its network, which is made from outside.
first_process='
set -e
host=$1 directory=$2 boot_id=$3
hostname "$host"
mount -t tmpfs tmpfs /dev/shm
mount --bind "$directory/tmp" "$TMPDIR"
mount --bind "$directory/names" /etc/hosts
[ -z "$boot_id" ] || mount --bind "$boot_id" /proc/sys/kernel/random/boot_id
: >"$directory/mounted"
# Orphans become its children: nobody waits for them, so the kernel is to forget them by itself.
exec env --ignore-signal=CHLD sleep infinity'

# make_hosts N [--one-machine]: n1 … nN. On one machine, as pods may be, all have the same boot id.
make_hosts() {
  local number=$1 boot_id i
  need_hosts
  forget_killed_tests
  setpriv --pdeathsig KILL unshare --net sleep infinity &
  switch=$!
  disown
  local own_network
  own_network=$(readlink /proc/self/ns/net)
  wait_until 10 "a switch" eval '[ "$(readlink /proc/$switch/ns/net)" != "'"$own_network"'" ]'
  in_switch ip link add br0 type bridge
  in_switch ip link set br0 up
  for ((i = 1; i <= number; ++i)); do
    host_names+=("n$i")
    mkdir -p "$hosts/n$i/tmp"
    name_hosts "n$i" "$number" >"$hosts/n$i/names"
    boot_id=
    if [ "${2:-}" != --one-machine ]; then
      boot_id=$hosts/n$i/boot_id
      cat /proc/sys/kernel/random/uuid >"$boot_id"
    fi
    setpriv --pdeathsig KILL unshare --net --uts --mount --pid --fork --kill-child --mount-proc \
      bash -c "$first_process" - "n$i" "$hosts/n$i" "$boot_id" &
    echo $! >"$hosts/n$i/keeper"
    disown
  done
  for ((i = 1; i <= number; ++i)); do
    wait_until 10 "host n$i" test -e "$hosts/n$i/mounted"
    pgrep -P "$(<"$hosts/n$i/keeper")" >"$hosts/n$i/pid"
    plug_in "n$i"
  done
}

name_hosts() {
  local self=$1 number=$2 i
  echo "127.0.0.1 localhost"
  echo "127.0.1.1 $self"
  for ((i = 1; i <= number; ++i)); do
    [ "n$i" = "$self" ] || echo "$(host_address "n$i") n$i"
  done
}

# Only into its network, where the pids are those of the test.
in_network_of() {
  local host=$1
  shift
  nsenter --target "$(host_pid "$host")" --net -- "$@"
}
plug_in() {
  local host=$1
  in_network_of "$host" ip link set lo up
  in_network_of "$host" ip link add eth0 type veth peer name "$host" netns "$switch" || fail "no link for $host"
  in_network_of "$host" ip address add "$(host_address "$host")/24" dev eth0
  in_network_of "$host" ip link set eth0 up
  in_switch ip link set "$host" master br0 up
}

# Packets vanish from here on, and nobody is told: eth0 stays up. That is a cable cut behind the next switch.
cut_link() { in_switch ip link set "$1" nomaster; }
mend_link() { in_switch ip link set "$1" master br0; }
# A cut that is felt: the kernel of one of these hosts has repeated, in vain, what it had repeated before.
felt_on() {
  local host
  for host in "$@"; do ! on "$host" ss -Htin | grep -q 'backoff:[2-9]' || return 0; done
  return 1
}
# shape_link HOST RATE: no more than that into either direction; RATE as tc writes it.
shape_link() {
  command -v tc >/dev/null || skip "no tc (apt-get install iproute2)"
  local reason
  reason=$({ on "$1" tc qdisc add dev eth0 root tbf rate "$2" burst 128kb limit 4mb &&
    in_switch tc qdisc add dev "$1" root tbf rate "$2" burst 128kb limit 4mb; } 2>&1) ||
    skip "links cannot be shaped here: $reason"
}
# free_link HOST: as fast as the kernel again.
free_link() {
  on "$1" tc qdisc del dev eth0 root
  in_switch tc qdisc del dev "$1" root
}
# give_processors HOST LIST: all that starts there from now on has only these, as taskset writes them.
give_processors() { echo "$2" >"$hosts/$1/processors"; }
# The power fails: nothing on the host says goodbye.
lose_host() {
  cut_link "$1"
  kill -KILL "$(<"$hosts/$1/keeper")"
  wait_until 10 "host $1 gone" gone "$(host_pid "$1")"
}

# start_on HOST COMMAND…: in the background. $started is the pid to wait for, $inner that of the command, for signals.
start_on() {
  local host=$1
  shift
  on "$host" "$@" </dev/null &
  started=$!
  inner=
  until [ -n "$inner" ] || gone $started; do inner=$(pgrep -P $started); done
}

pids=()  # of a test that starts commands on hosts by start_on itself
declare -A node_started node_inner
# start_node HOST ARGUMENT…: colrun with these arguments there, in the background.
start_node() {
  local host=$1
  shift
  start_on "$host" "$COLRUN" "$@" >"$work/$host.out" 2>"$work/$host.err"
  node_started[$host]=$started
  node_inner[$host]=$inner
}
# expect_node CODE HOST [SECONDS]: the colrun that start_node has started there ends with that code.
expect_node() {
  local expected=$1 host=$2 seconds=${3:-30} code
  wait_until "$seconds" "colrun on $host to end" gone "${node_started[$host]}"
  wait "${node_started[$host]}"
  code=$?
  [ "$code" -eq "$expected" ] || fail "exit code $code instead of $expected from colrun on $host"
}

# signal_host STOP|CONT HOST: all processes there, but the first. Where a command that `on` has started stops, nsenter does so,
# too.
signal_host() {
  local signal=$1 first here
  first=$(host_pid "$2")
  here=$(readlink "/proc/$first/ns/pid")
  here=${here//[^0-9]/}  # of pid:[…]
  find /proc -mindepth 3 -maxdepth 3 -path '/proc/[0-9]*/ns/pid' -lname "*$here*" -not -path "/proc/$first/*" 2>/dev/null |
    sed 's,/proc/\([0-9]*\)/.*,\1,' | xargs --no-run-if-empty kill "-$signal"
  [ "$signal" = STOP ] || kill -CONT "${pids[@]}" "${node_started[@]}" 2>/dev/null
}

# The helpers of lib.sh, for all hosts. A host that was lost has nothing left.
fail() {
  local file
  echo "FAILED: $*" >&2
  for file in "$out" "$err" "$work"/n*.out "$work"/n*.err; do
    if [ -s "$file" ]; then echo "--- $(basename "$file") (its end)" >&2; tail -n 20 "$file" >&2; fi
  done
  exit 1
}
files_left() {
  local host
  find "$TMPDIR" -mindepth 1
  for host in "${host_names[@]}"; do
    gone "$(host_pid "$host")" || find "/proc/$(host_pid "$host")/root$TMPDIR" -mindepth 1 -printf "$host: %P\n"
  done
}
shared_memory_left() {
  local host
  for host in "${host_names[@]}"; do
    gone "$(host_pid "$host")" || find "/proc/$(host_pid "$host")/root/dev/shm" -mindepth 1 -printf "$host: %P\n"
  done
}
no_file() { [ -z "$(files_left)" ]; }
nothing_left() {
  no_process || fail "processes left: $(describe_processes)"
  no_file || fail "files left: $(files_left)"
  no_shared_memory || fail "shared memory left: $(shared_memory_left)"
}
# nothing_left_soon [SECONDS]: within that time.
nothing_left_soon() {
  local end=$((SECONDS + ${1:-10}))
  until { no_process && no_file; } || [ "$SECONDS" -gt "$end" ]; do look_again; done
  nothing_left
}
describe_processes() {
  local pid
  for pid in $(job_processes); do
    echo "$pid on $(env -u COLTEST_TAG nsenter --target "$pid" --uts hostname): $(tr '\0' ' ' <"/proc/$pid/cmdline")"
  done
}
# processes_on HOST: those of the job there.
processes_on() {
  local pid here
  here=$(readlink "/proc/$(host_pid "$1")/ns/pid")
  for pid in $(job_processes); do
    [ "$(readlink "/proc/$pid/ns/pid")" != "$here" ] || echo "$pid"
  done
}
