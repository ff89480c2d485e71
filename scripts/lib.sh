# Shared by quickstart, test and dev: what to install, and how to configure a build. Sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# Build tools, then libraries (Gloo moves the data; the others are for text, options, JSON and tests).
packages=(g++ meson ninja-build pkg-config cmake
          libgloo-dev libfmt-dev libcli11-dev nlohmann-json3-dev libssl-dev catch2)
# For the tests: other launchers, whose worlds they join, what colbench draws with, what several nodes are made of on
# one machine, what a program that was written for torchrun needs, and what makes the bundle for machines with GPUs.
test_packages=(openmpi-bin mpich slurm-wlm munge gnuplot-nox gdb elfutils iproute2 openssh-client openssh-server
               python3-torch patchelf)

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }
# A command line that is wrong. Needs the script's own usage().
usage_error() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; usage >&2; exit 2; }

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
  done
}

install_packages() {
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
    die "this is not Debian or Ubuntu: install the counterparts of ${packages[*]} yourself, then run with --no-install"
  local missing sudo=()
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "run as root, or install sudo, or install these yourself and use --no-install: $missing"
    sudo=(sudo)
  fi
  say "Installing with apt-get: $missing"
  "${sudo[@]}" apt-get update -qq
  # shellcheck disable=SC2086 # a list of words
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
    die "apt-get could not install: $missing"
}

# configure DIR MESON_OPTION…: sets DIR up, or changes the options of one that is set up already.
configure() {
  local dir=$1
  shift
  if [ -f "$dir/build.ninja" ]; then
    meson configure "$dir" "$@" >/dev/null
  else
    rm -rf "$dir"
    meson setup "$dir" "$@"
  fi
}
