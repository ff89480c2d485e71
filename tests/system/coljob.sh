#!/bin/bash
# coljob: its commands and exit codes, on jobs that run, hang, have ended, or are none; and SIGQUIT to colrun.
OWN_PROCESSES=${OWN_PROCESSES:-yes}
. "$(dirname "$0")/lib.sh"
: "${COLJOB:?set COLJOB to the coljob program}" "${PLANTED_HANG:?set PLANTED_HANG to the planted_hang program}"

# ---- No job
expect_exit 0 "$COLJOB" ps
expect_in "$out" '^no job of this user runs on this host'
expect_exit 3 "$COLJOB" why
expect_in "$err" '^coljob: no job of this user runs on this host'
expect_exit 3 "$COLJOB" dump 20261126
expect_in "$err" "^coljob: no job of this user on this host fits '20261126'; see coljob ps"

# ---- Usage
refused() {  # refused WHAT WORD…: in one line
  local what=$1
  shift
  expect_exit 2 "$COLJOB" "$@"
  expect_lines "$err" 1
  expect_in "$err" "^coljob: .*$what.*[;?] see coljob --help\$"
}
refused 'no command; write ps, why, top, stacks or dump'
refused "there is no command 'wy'; did you mean 'why'" wy
refused "there is no command '-'; write ps, why, top, stacks or dump" -
refused 'coljob why 12' ps 12
refused 'the job.s name is empty; leave it out' why ''
refused "--after takes a time such as 500ms, 10s or 5m, not '-1s'" why --after -1s
refused '--after needs a value: --after TIME' why --after ''
refused '--json is an option of why' ps --json
refused '-o is an option of dump' why -o f
refused "unknown option '--nothing'" why --nothing
refused "--dir takes a folder that is there, not '$work/none'" ps --dir "$work/none"
# A file that is none of ours, and a folder.
printf 'text\r\n' >"$work/text"
expect_exit 3 "$COLJOB" why "$work/text"
expect_in "$err" "^coljob: job .*text cannot be looked into: .*is no control page of col"
for name in "$work" text; do
  (cd "$work" && expect_exit 3 "$COLJOB" why "$name") || exit 1
  expect_in "$err" "^coljob: no job of this user on this host fits '$name'; coljob why reads files of coljob dump and colrun --json\$"
done
expect_exit 0 "$COLJOB" --version
expect_in "$out" '^coljob [0-9]+\.[0-9]+\.[0-9]+$'
expect_exit 0 "$COLJOB" --help
expect_in "$out" 'Exit code: 0 healthy; 1 stuck; 2 usage; 3 no such job'
[ "$(wc -L <"$out")" -le 80 ] || fail "--help is wider than a screen"
# What becomes of stdout: a full disk is an error, a reader that is gone ends it. A closed one is none, but for a text that was
# asked for. Nor does it matter that nobody can be told.
for words in --help ps; do
  expect_exit 2 sh -c '"$0" "$1" >/dev/full' "$COLJOB" $words
  expect_in "$err" '^coljob: cannot write to stdout: No space left on device'
  expect_lines "$err" 1
  expect_exit 2 sh -c '"$0" "$1" >/dev/full 2>/dev/full' "$COLJOB" $words
  expect_exit $([ $words = ps ] && echo 0 || echo 2) sh -c '"$0" "$1" >&-' "$COLJOB" $words
  expect_exit 0 sh -c '"$0" "$1" 2>&-' "$COLJOB" $words
  expect_exit 141 bash -c 'exec 3> >(exec true); wait $!; "$0" "$1" >&3' "$COLJOB" $words
  expect_in "$err" '^coljob: cannot write to stdout: Broken pipe$'
  expect_lines "$err" 1
done
expect_exit 3 sh -c '"$0" why >/dev/full 2>&-' "$COLJOB"
expect_exit 0 "$COLJOB" --help-all
# Every option of --help-all is in the manual page, and no other.
shown=$(grep -oE '^  -[^ ]+' "$out" | tr -d ' ' | tr , '\n' | sort)
described=$(sed -nE 's/^\.It Fl (.*)$/\1/p' "$(dirname "$0")/../../docs/man/coljob.1" |
  sed -E 's/ Ar .*//; s/ , /\n/' | sed 's/^/-/' | sort)
[ "$shown" = "$described" ] || fail "manual page: $described; --help: $shown"

# What completions offer.
expect_exit 0 "$COLJOB" why --list-options
expect_in "$out" '^;;<job> <file>;$'
expect_in "$out" '^--dir;DIR;<directory>;\*'
expect_exit 0 "$COLJOB" --list-options
expect_in "$out" '^;;ps why top stacks dump;$'

# ---- A job that hangs
export COL_TIMEOUT=120s
mkdir "$work/there"
"$COLRUN" -n 3 --json "$work/report" "$PLANTED_HANG" barrier "$work/there" >"$work/job" 2>&1 &
job=$!
wait_until 30 "the ranks are there" files "$work/there" 3
stuck() { "$COLJOB" why --after 300ms >"$out" 2>"$err"; [ $? -eq 1 ]; }
wait_until 20 "it is stuck" stuck
expect_in "$out" "^ranks 0-1 have waited for [0-9.]+ s in barrier #1 of group 'default': rank 2 \\(pid [0-9]+\\) has not called it"
expect_in "$out" '^2 +[0-9]+ +computing '
expect_in "$out" '^0-1 +waiting +[0-9.]+ s +2 +barrier #1'
expect_exit 0 "$COLJOB" why --after 1h
expect_exit 0 "$COLJOB" ps --after 300ms
expect_in "$out" '^[0-9]{8}-[0-9]{6}-[0-9]+-[0-9a-f]{8} +3 +[0-9.]+ s +stuck +.*planted_hang barrier'
id=$(sed -n '3s/ .*//p' "$out")
# On a terminal nothing is wider than it is, and the id is there to be copied.
python3 - "$COLJOB" "$id" <<'P' || fail "coljob is wider than its terminal (above)"
import fcntl, os, pty, struct, sys, termios
coljob, job = sys.argv[1:]
for columns in 60, 80:
    for command in "ps", "why":
        child, terminal = pty.fork()
        if child == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.execve(coljob, [coljob, command], dict(os.environ, NO_COLOR="1", TERM="xterm"))
        text = b""
        while True:
            try:
                data = os.read(terminal, 1 << 16)
            except OSError:  # what a terminal says when its last process has ended
                break
            if not data:
                break
            text += data
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        lines = text.decode().replace("\r\n", "\n").splitlines()
        wide = [line for line in lines if len(line) > columns]
        assert code in (0, 1) and len(lines) > 2 and not wide, (columns, command, code, lines)
        assert command == "why" or any(line.startswith(job + " ") for line in lines), lines
P
# By a part of its id, by the pid of a rank, by its page.
pid=$("$COLJOB" why | sed -nE 's/^2 +([0-9]+) .*/\1/p')
for name in "$id" "${id: -8}" "$pid" "$TMPDIR/col-$id/control"; do
  expect_exit 1 "$COLJOB" why --after 300ms "$name"
done
# From another TMPDIR.
expect_exit 3 env TMPDIR="$work" "$COLJOB" why
expect_exit 1 env TMPDIR="$work" "$COLJOB" why --after 300ms --dir "$TMPDIR" --dir "$work"
# Written down, and read again.
expect_exit 0 "$COLJOB" dump -o "$work/dump.json"
expect_exit 1 "$COLJOB" why --after 300ms "$work/dump.json"
expect_in "$out" "in barrier #1 of group 'default': rank 2 \\(pid $pid\\) has not called it"
expect_exit 0 "$COLJOB" dump
expect_in "$out" '"schema": "col.job/1"'
echo '{"schema": 1}' >"$work/none.json"
expect_exit 2 "$COLJOB" why "$work/none.json"
# Where the ranks are, by whatever tool there is here.
expect_exit 0 "$COLJOB" stacks
expect_in "$out" '^coljob: stack of rank'

# ---- The page is its user's alone, and says what it is
[ "$(stat -c %a "$TMPDIR/col-$id/control")" = 600 ] || fail "mode of the page"
[ "$(stat -c %a "$TMPDIR/col-$id")" = 700 ] || fail "mode of the directory"
mkdir -p "$TMPDIR/col-other"
cp "$TMPDIR/col-$id/control" "$TMPDIR/col-other/control"
printf '\x63' | dd of="$TMPDIR/col-other/control" bs=1 seek=8 conv=notrunc status=none
expect_exit 0 "$COLJOB" ps
expect_in "$out" '^other +unknown$'
expect_in "$out" '^job other: .*is a control page of another release of col \(layout 99, this one has [0-9]+\)'
expect_exit 3 "$COLJOB" why other
expect_in "$err" '^coljob: job other cannot be looked into: .*another release of col'
cp -r "$TMPDIR/col-$id" "$work/kept"

# ---- The first SIGQUIT asks why, and the job goes on; the second ends it
kill -QUIT $job
asked() { grep -qE "^colrun: ranks 0-1 have waited for .*: rank 2 \\(pid $pid\\) has not called it" "$work/job"; }
wait_until 10 "an answer to SIGQUIT" asked
gone $job && fail "SIGQUIT ended the job"
kill -QUIT $job
expect_status 131 $job
expect_in "$work/job" '^colrun: interrupted by SIGQUIT'
rm -r "$TMPDIR/col-other"
nothing_left

# ---- What a job has left that has ended
cp -r "$work/kept" "$TMPDIR/col-ended"
expect_exit 0 "$COLJOB" ps
expect_in "$out" '^ended +ended$'
expect_in "$out" '^job ended: it has ended: none of its processes is left'
expect_exit 3 "$COLJOB" why
"$COLJOB" why ended >"$out" 2>"$err"
expect_in "$err" '^coljob: job ended: it has ended: none of its processes is left'
rm -r "$TMPDIR/col-ended"

# ---- Ranks that no launcher has started, and that meet by a store alone: by the pid of one
mkdir "$work/store" "$work/met"
pids=()
for rank in 0 1 2; do
  PLANTED_STORE=file://$work/store COL_RANK=$rank "$PLANTED_HANG" crossed "$work/met" >"$work/job" 2>&1 &
  pids+=($!)
done
wait_until 30 "the ranks are there" files "$work/met" 3
stuck_there() { "$COLJOB" why --after 300ms "${pids[0]}" >"$out" 2>"$err"; [ $? -eq 1 ]; }
wait_until 20 "they are stuck" stuck_there
expect_in "$out" "^ranks 0-1 wait for one another in a circle"
kill -KILL "${pids[@]}"
{ wait "${pids[@]}"; } 2>/dev/null
nothing_left

# ---- colrun says it by itself, again and again
"$COLRUN" -n 3 --report-hang 400ms "$PLANTED_HANG" never_sent "$work/there" >"$work/job" 2>&1 &
job=$!
said_again() { [ "$(grep -cE '^colrun: rank 1 has waited for .* from rank 0 .* has not sent it' "$work/job")" -ge 2 ]; }
wait_until 20 "two reports of the hang" said_again
kill -TERM $job
expect_status 143 $job
nothing_left

# ---- The report says the same, and blames the same rank
expect_exit 124 "$COLRUN" -n 3 --timeout 1500ms --json "$work/report" "$PLANTED_HANG" wrong_tag "$work/there"
expect_in "$err" "^colrun: rank 1 has waited .* with tag 5 from rank 0 .*: rank 0 .* has sent one with tag 6, which nobody receives\$"
expect_in "$work/report" '"culprit": 0,'
expect_in "$work/report" '"cause": "wrong_tag"'
expect_exit 0 "$COLJOB" why --after 1h "$work/report"
expect_in "$out" 'has sent one with tag 6, which nobody receives'
COL_TIMEOUT=1s expect_exit 1 "$COLRUN" -n 3 --json "$work/report" "$PLANTED_HANG" crossed "$work/there"
expect_in "$err" "^colrun: ranks 0-1 wait for one another in a circle"
nothing_left
