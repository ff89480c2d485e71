#!/usr/bin/env bash
# scripts/quickstart lets the trainer run before it builds the rest. Wherever it is broken off, what out/ has is whole, and the next
# call goes on. Ninja and Meson are stand-ins here: what they would build is there already, and what they would install comes from the
# build of this test.
. "$(dirname "$0")/lib.sh"
unset LD_LIBRARY_PATH DESTDIR

# Nothing of the rest is in the way.
needs=$(ninja -C "$BUILD_DIR" -t inputs first_job | tr ' ' '\n')
grep -q 'libcol_group\.a$' <<<"$needs" || fail "first_job does not need libcol: $needs"
if grep -E 'nccl|ucx|colbench|colcheck|coljob|python/col|^tests/' <<<"$needs"; then fail "the first job needs this (above)"; fi

mkdir clone tools
cp -R "$SOURCE_DIR/scripts" clone/
cat >tools/ninja <<'SH'
#!/usr/bin/env bash
echo "ninja ${*:3}"
# So it ends when it is interrupted.
[ "$BREAK" != build ] || [ $# -gt 2 ] || exit 2
SH
cat >tools/meson <<'SH'
#!/usr/bin/env bash
set -eu
echo "meson $1 ${*: -1}"
case $1 in
  setup) mkdir -p build/meson-info; touch build/build.ninja ;;
  install)
    "$MESON" install -C "$BUILD_DIR" --destdir "$WORK/real" --no-rebuild --quiet "${@:5}"
    out=$DESTDIR$PWD/out
    mkdir -p "$(dirname "$out")"
    mv "$(dirname "$(dirname "$(find "$WORK/real" -name colrun -path '*/bin/*')")")" "$out"
    rm -rf "$WORK/real"
    if [ "$BREAK" = install ]; then
      truncate -s 100 "$out/bin/colrun"
      exit 1
    fi
    ;;
esac
SH
chmod +x tools/*
MESON=$(command -v meson)
export MESON WORK=$work BREAK
quickstart() { PATH=$work/tools:$PATH timeout --kill-after=5 60 clone/scripts/quickstart --no-install "$@" >out 2>&1; }
first_job_runs() {
  timeout --kill-after=5 60 clone/out/bin/colrun -n 2 clone/out/libexec/col/digits_trainer --epochs 1 --no-save >job || fail "$(cat job)"
}
# The beginnings of the lines that matter.
steps() { grep -E '^(ninja|meson|test accuracy|The rest|All)' out | awk '{print $1, $2, ($1 == "meson" ? $NF : $3)}' | sed 's/ 0\.9[0-9]*$/ 0.9…/'; }

# A set-up that was broken off is none.
mkdir clone/build
touch clone/build/build.ninja
BREAK=build
if quickstart -Dbackends=auto; then fail "an interrupted build was overheard: $(cat out)"; fi
diff - <(steps) <<'TXT' || fail "other steps (above): $(cat out)"
meson setup -Dbackends=auto
ninja first_job 
meson install first_job
test accuracy 0.9…
The rest is
ninja  
TXT
[ ! -e clone/out/bin/colcheck ] || fail "the rest is there before it was built"
first_job_runs

touch clone/build/meson-info/meson-info.json
BREAK=install
if quickstart; then fail "an installation that failed was overheard: $(cat out)"; fi
first_job_runs

BREAK=
quickstart || fail "the next call does not go on: $(cat out)"
[ "$(tail -n 1 out)" = "All of col is in out/." ] || fail "it ends otherwise: $(cat out)"
first_job_runs
clone/out/bin/colcheck --version >job || fail "the rest was not installed: $(cat job)"
[ "$(ls -A clone/out)" = "$(printf 'bin\ndigits.model\ninclude\nlib\nlibexec\nshare')" ] || fail "out/ has something else: $(ls -A clone/out)"
