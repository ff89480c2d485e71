# shellcheck shell=bash
# An ssh server on each host of nodes_lib.sh, and a client's configuration that gets in. Sourced instead of it; then
# make_hosts and serve_ssh.
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"

ssh=$work/ssh
# What colrun --ssh takes: it knows the hosts' keys, has a key of its own, and asks nobody anything.
ssh_command="ssh -F $ssh/config"

# serve_ssh: on all hosts that there are. A session gets the test's tag and $TMPDIR, so what it leaves is found.
serve_ssh() {
  local host
  # sshd wants to be called by its whole path.
  server=$(PATH=$PATH:/usr/sbin:/sbin command -v sshd) || skip "no sshd (apt-get install openssh-server)"
  command -v ssh-keygen >/dev/null || skip "no ssh-keygen (apt-get install openssh-client)"
  mkdir "$ssh"
  chmod 700 "$ssh"
  ssh-keygen -q -t ed25519 -N '' -f "$ssh/host_key"
  ssh-keygen -q -t ed25519 -N '' -f "$ssh/key"
  cp "$ssh/key.pub" "$ssh/authorized_keys"
  echo "n*,10.77.0.* $(cut -d' ' -f1,2 <"$ssh/host_key.pub")" >"$ssh/known_hosts"
  cat >"$ssh/config" <<CONFIG
Host *
  User root
  IdentityFile $ssh/key
  IdentitiesOnly yes
  UserKnownHostsFile $ssh/known_hosts
  GlobalKnownHostsFile none
  BatchMode yes
  ConnectTimeout 5
  LogLevel ERROR
CONFIG
  for host in "${host_names[@]}"; do
    cat >"$ssh/$host.conf" <<CONFIG
HostKey $ssh/host_key
AuthorizedKeysFile $ssh/authorized_keys
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PrintMotd no
PidFile none
MaxStartups 100
SetEnv COLTEST_TAG=$COLTEST_TAG TMPDIR=$TMPDIR OMP_NUM_THREADS=1
CONFIG
    # Where it shuts itself in before anybody is let in; not on the machine's own /run.
    on "$host" bash -c 'mount -t tmpfs tmpfs /run && mkdir /run/sshd' || fail "no /run for sshd on $host"
    # What the account's own shell does at its start is not for tests: it may take long, or hold a lock when it is killed.
    ! [ -e ~root/.bashrc ] || on "$host" mount --bind /dev/null ~root/.bashrc || fail "no .bashrc of its own on $host"
    on "$host" "$server" -f "$ssh/$host.conf" -E "$ssh/$host.log" || fail "sshd does not start on $host"
    # The same for a user whose shell talks on every login.
    on "$host" "$server" -p 2222 -f "$ssh/$host.conf" -E "$ssh/$host.log" \
      -o 'ForceCommand echo "Welcome to $(hostname)"; eval "$SSH_ORIGINAL_COMMAND"' ||
      fail "the second sshd does not start on $host"
  done
  for host in "${host_names[@]}"; do
    on n1 $ssh_command "$host" true 2>"$err" || fail "cannot log in to $host: $(cat "$ssh/$host.log")"
  done
}
