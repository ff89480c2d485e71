#!/usr/bin/env bash
# The wheel of scripts/dev wheel: made twice, by two clones of the last commit, it has the same bytes; in a bare root of this
# distribution with python3 and python3-venv it is installed, used and removed. As root, with debootstrap and a mirror of packages:
# many minutes, so that scripts/dev everything runs it, and not the test suite.
# usage: wheel.sh [--root FOLDER] [--wheel FILE] [OPTION of scripts/dev wheel]…
#   --root FOLDER   a root that debootstrap has made, with python3 and python3-venv; it is copied, not changed
#   --wheel FILE    the wheel to install; none is made
set -euo pipefail
. "$(dirname "$0")/bare_root.sh"
bare=
wheel=
while :; do
  case ${1:-} in
    --root) bare=$(realpath "${2:?--root needs a folder}") ;;
    --wheel) wheel=$(realpath "${2:?--wheel needs a file}") ;;
    *) break ;;
  esac
  shift 2
done

# ---- Made twice
make_wheel() {  # make_wheel FOLDER OPTION…: by a clone in that folder
  git clone --quiet "$source_dir" "$1"
  (cd "$work" && "$1/scripts/dev" wheel --no-install "${@:2}") >"$work/log" 2>&1 ||
    fail "scripts/dev wheel in $1: $(tail -n 30 "$work/log")"
}
if [ -z "$wheel" ]; then
  make_wheel "$work/a" "$@" "$work/first"
  # The same tools; else all is another.
  tools=$(echo "$work"/a/build-wheel-*-tools/bin/python)
  [ ! -x "$tools" ] || set -- "$@" --python "$tools"
  (umask 077; export TZ=Pacific/Kiritimati LC_ALL=C CCACHE_DISABLE=1
   make_wheel "$work/a-folder-with-a-longer-name" "$@" "$work/second")
  for folder in first second; do (cd "$work/$folder" && unzip -q -d "$work/unpacked-$folder" ./*.whl); done
  diff -rq "$work/unpacked-first" "$work/unpacked-second" || fail "files of the two wheels differ (above)"
  cmp "$work"/first/*.whl "$work"/second/*.whl || fail "the files are equal, and the archives are not (above)"
  wheel=$(echo "$work"/first/*.whl)
  echo "$(basename "$wheel"), $(stat -c %s "$wheel") bytes: made twice, the same bytes"
fi

# ---- In a bare root
bare_root "$bare" python3,python3-venv
mkdir "$root/srv/col"
cp "$wheel" "$root/srv/col/"
cat >"$root/srv/col/sum.py" <<'PY'
import array
import col

group = col.init()
values = array.array("i", [group.rank + 1])
group.allreduce(values)
print(f"rank {group.rank} of {group.size} by {group.backend}: the sum is {values[0]}")
col.finalize()
PY
cat >"$root/srv/col/import.py" <<'PY'
import statistics
import subprocess
import sys
import time


def milliseconds(program):
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return (time.perf_counter() - begin) * 1e3


pairs = [(milliseconds("pass"), milliseconds("import col")) for _ in range(20)]
print("import col: {:.1f} ms above an empty program, median of {}".format(statistics.median(b - a for a, b in pairs), len(pairs)))
PY
in_environment() { in_root sh -ec ". /srv/env/bin/activate; cd /srv/col; $1" >"$work/out" 2>&1 || fail "$1: $(cat "$work/out")"; }
files() { find "$root/srv/env" -name __pycache__ -prune -o -print | sort; }

in_root python3 -m venv /srv/env
files >"$work/before"
begin=$(date +%s.%N)
in_environment "pip install --quiet --no-index --disable-pip-version-check ./*.whl; colrun -n 8 python sum.py"
echo "installed, and eight ranks have run: $(awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $begin }") s"
for backend in shm gloo; do
  in_environment "COL_BACKEND=$backend colrun -n 2 python sum.py"
  grep '^rank' "$work/out" | sort | diff - <(printf "rank %s of 2 by $backend: the sum is 3\n" 0 1) || fail "two ranks over $backend (above)"
done
in_environment "colcheck --quick"
tail -n 3 "$work/out"
in_environment "colbench --version; coljob --version; python import.py"
cat "$work/out"
in_environment "pip uninstall --quiet --yes --disable-pip-version-check libcol"
files | diff "$work/before" - || fail "pip uninstall leaves files (above)"
echo wheel.sh
