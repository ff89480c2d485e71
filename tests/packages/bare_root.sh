# For the tests of this folder, which source it: a root of this distribution that has nothing of ours, and commands in it.
fail() { echo "FAILED: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "run it as root"
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/col-packages-XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root

# bare_root MADE PACKAGES: $root, with these packages (as a,b), or a copy of a root that debootstrap has made with them.
bare_root() {
  if [ -n "$1" ]; then
    cp -a "$1" "$root"
  else
    command -v debootstrap >/dev/null || fail "debootstrap is not installed: apt-get install debootstrap"
    debootstrap --variant=minbase --include="$2" "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" >"$work/log" ||
      fail "debootstrap: $(tail "$work/log")"
  fi
  cp /etc/resolv.conf "$root/etc/resolv.conf"
}

# in_root COMMAND…: with mounts that end with it, and nothing of our environment.
in_root() {
  unshare -m sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /usr/bin/env -i \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive timeout 600 "$@"' "$root" "$@"
}
