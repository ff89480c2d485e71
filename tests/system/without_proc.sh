#!/bin/bash
# Where /proc is not mounted, a job runs, or an error says that, and blames no limit.
. "$(dirname "$0")/lib.sh"
: "${HELLO:?set HELLO to the hello program}"

hidden=(unshare -m)
[ "$(id -u)" -eq 0 ] || hidden=(unshare -rm)
"${hidden[@]}" mount -t tmpfs none /proc 2>/dev/null || { echo "/proc cannot be hidden here"; exit 77; }
# The loader cannot find out where a program is, so it does not find what stands beside it either.
LD_LIBRARY_PATH=$(ldd "$HELLO" | sed -n 's/.*libcol\.so.* => \(.*\/\)libcol\.so.*/\1/p')
export LD_LIBRARY_PATH
without_proc() { # COMMAND…
  timeout -k 1 30 "${hidden[@]}" sh -c 'mount -t tmpfs none /proc; exec "$@"' - "$@" >"$out" 2>"$err"
}
for backend in gloo auto; do
  COL_BACKEND=$backend without_proc "$COLRUN" -n 3 "$HELLO" || fail "no job over $backend"
  expect_lines "$out" 3
done
COL_BACKEND=shm without_proc "$COLRUN" -n 2 "$HELLO" && fail "which machine it is on cannot be known"
expect_in "$err" 'rank 0 \(host .*\) cannot see which machine it is on, as /proc is not mounted there; choose backend gloo'
expect_not_in "$err" 'ulimit|on another machine'
# A UCX that needs it says no more than that it cannot read or write; one that does not has the job run.
if [ -e "$LD_LIBRARY_PATH/libcol_ucx.so" ]; then
  if COL_BACKEND=ucx without_proc "$COLRUN" -n 2 "$HELLO"; then
    expect_lines "$out" 2
  else
    expect_in "$err" "^colrun: rank [01] said resource: ucx: cannot .*; UCX reads /proc, which is not mounted here; "
    expect_not_in "$err" 'ulimit'
  fi
fi
printf '#!/bin/sh\nexec sh -c "$2"\n' >"$work/there"
chmod +x "$work/there"
without_proc "$COLRUN" --ssh "$work/there" --host localhost:1,far.example:1 true && fail "where colrun is cannot be known"
expect_in "$err" '^colrun: .*/proc, which must be mounted'
nothing_left_soon
