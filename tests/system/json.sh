#!/bin/bash
# --json: the report as JSON, whose command repeats the run.
. "$(dirname "$0")/lib.sh"

type python3 >/dev/null 2>&1 || { echo "python3 is missing: nothing to read JSON with"; exit 77; }
json=$work/report.json
check() { python3 - "$json" "$@" <<'P' || fail "the report is not as expected: $*"
import json, sys
report = json.load(open(sys.argv[1], encoding="utf-8"))
ranks = report["ranks"]
for condition in sys.argv[2:]:
    if not eval(condition):
        print("not so:", condition, "in", json.dumps(report, indent=1), file=sys.stderr)
        sys.exit(1)
P
}
expect_exit 3 "$COLRUN" -n 3 --json "$json" sh -c 'echo "it'"'"'s \"wrong\"" >&2; printf "\377\n" >&2; [ $RANK = 1 ] || exec sleep 60; until [ -e "$0/x" ]; do : >"$0/x"; done; exit 3' "$work"
check 'report["schema"] == "col.job/1"' 'report["tool"] == "colrun"' 'report["exit_code"] == 3' 'report["cause"] == "rank_failed"' \
  'report["culprit"] == 1' 'report["processes_left"] == 0' 'report["nodes"] == 1' 'report["restarts"] == 0' 'report["seconds"] > 0' \
  'report["started_at"].endswith("Z")' '[rank["rank"] for rank in ranks] == list(range(len(ranks)))' 'ranks[1]["outcome"] == "exited"' \
  'ranks[1]["exit_code"] == 3' 'ranks[1]["signal"] is None' 'ranks[1]["last_stderr"][0] == "it'"'"'s \"wrong\""' 'ranks[1]["pid"] > 1' \
  'ranks[0]["signal"] == "SIGTERM" and ranks[0]["told_to_end"]' 'ranks[1]["peak_rss_bytes"] > 100000' 'not ranks[1]["told_to_end"]'
# Again, by the command in the report alone, from another directory.
command=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["command"]["shell"])' "$json")
directory=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["command"]["directory"])' "$json")
[ "$directory" = "$PWD" ] || fail "the directory is $directory"
rm "$json"
expect_exit 3 bash -c "cd '$directory' && $command"
check 'report["exit_code"] == 3' 'report["culprit"] == 1'
# Options that came from elsewhere are in it, words stay words.
COLRUN_MAX_RESTARTS=1 COLRUN_NP=2 expect_exit 0 "$COLRUN" --json "$json" sh -c 'echo "$0|$1|$TORCHELASTIC_MAX_RESTARTS"' 'a  b' "c'd\$HOME*"
cp "$out" "$work/first"
command=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["command"]["shell"])' "$json")
expect_exit 0 bash -c "$command"
cmp "$out" "$work/first" || fail "the command of the report is not the run's"
expect_lines "$out" 2

expect_exit 0 "$COLRUN" -n 2 --json "$json" true
check 'report["exit_code"] == 0' 'report["cause"] == "none"' 'report["culprit"] is None' 'len(ranks) == 2'
expect_exit 124 "$COLRUN" -n 2 --timeout 200ms --json "$json" sleep 60
check 'report["exit_code"] == 124' 'report["cause"] == "timed_out"'
expect_exit 139 "$COLRUN" -n 1 --json "$json" bash -c 'ulimit -c 0; kill -SEGV $$'
check 'ranks[0]["outcome"] == "signalled"' 'ranks[0]["signal"] == "SIGSEGV"' 'report["exit_code"] == 139'
expect_exit 4 "$COLRUN" -n 1 --max-restarts 2 --json "$json" sh -c 'exit 4'
check 'report["restarts"] == 2' 'report["exit_code"] == 4'
# To stdout it comes last, after all output.
expect_exit 5 "$COLRUN" -n 1 --json - sh -c 'echo first; exit 5'
[ "$(head -1 "$out")" = first ] || fail "the rank's output does not come first"
tail -n +2 "$out" >"$json"
check 'report["exit_code"] == 5'
# Interrupted, too.
rm -f "$json"
"$COLRUN" -n 2 --json "$json" sh -c ': >"$0/ready.$RANK"; exec sleep 60' "$work" 2>"$err" &
pid=$!
wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1"
kill -TERM $pid
expect_status 143 $pid
check 'report["cause"] == "interrupted"' 'report["signal"] == "SIGTERM"' 'report["exit_code"] == 143'
# A report that cannot be written: refused before the job starts, in one line that says what to do.
refused() { # PATH REASON
  expect_exit 2 "$COLRUN" -n 2 --json "$1" touch "$work/started"
  expect_lines "$err" 1
  expect_in "$err" "^colrun: --json: cannot write .*: $2; name a file that can be written"
  [ ! -e "$work/started" ] || fail "a rank was started"
}
refused "$work/no/such/directory/x.json" 'No such file or directory'
refused "$work" 'Is a directory'
touch "$work/file"
refused "$work/file/x.json" 'Not a directory'
# Root may write anywhere, but not to a file system that nobody may write to.
if unshare -rm true 2>/dev/null; then
  mkdir "$work/locked"
  expect_exit 2 unshare -rm bash -c 'mount -t tmpfs -o ro tmpfs "$1" && exec "$0" -n 2 --json "$1/x.json" touch "$2"' \
    "$COLRUN" "$work/locked" "$work/started"
  expect_lines "$err" 1
  expect_in "$err" '^colrun: --json: cannot write .*: Read-only file system; name a file that can be written'
  [ ! -e "$work/started" ] || fail "a rank was started"
fi
# When the directory goes while the job runs, that is said; the exit code stays the job's.
mkdir "$work/goes"
expect_exit 0 "$COLRUN" -n 1 --json "$work/goes/x.json" rmdir "$work/goes"
expect_in "$err" '^colrun: cannot write the report: .*x\.json'
# Where ranks never ran there is no report of an earlier run either.
expect_exit 127 "$COLRUN" -n 1 --json "$json" no-such-program
[ ! -e "$json" ] || check 'report["exit_code"] == 127'
nothing_left
