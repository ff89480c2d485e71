#!/usr/bin/env bash
# Whatever becomes of the terminal, or of stderr, colbench ends as it says, never by SIGABRT.
. "$(dirname "$0")/lib.sh"

for end in /dev/full closed; do
  for arguments in "allredcue" "allreduce --size 1K --launches 1 --max-time 20ms --bound off --json $work/no/r.json"; do
    # shellcheck disable=SC2086
    if [ "$end" = closed ]; then timeout 60 "$COLBENCH" $arguments >"$out" 2>&-; else
      timeout 60 "$COLBENCH" $arguments >"$out" 2>/dev/full; fi
    code=$?
    [ "$code" = 2 ] || fail "exit code $code, not 2, for '$arguments' with stderr $end"
  done
done
# stdout too: nobody can be told.
timeout 60 "$COLBENCH" allreduce --size 1K --launches 1 --max-time 20ms --bound off >/dev/full 2>/dev/full
code=$?
[ "$code" = 2 ] || fail "exit code $code, not 2, with nowhere to write"

# The terminal closes while ranks run: SIGHUP, and nowhere to print. What was found is in the file.
python3 - "$COLBENCH" "$work" <<'P' || fail "the terminal's end was not colbench's own"
import json, os, pty, select, signal, sys
colbench, work = sys.argv[1:]
for i in range(5):
    path = f"{work}/{i}.json"
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it
        os.execv(colbench, [colbench, "allreduce", "--sizes", "1K,2K,4K", "--max-time", "60s", "--ci", "0.0001%",
                            "--bound", "off", "--json", path])
    seen = b""
    while b"cells" not in seen:  # the progress line: ranks are measuring
        seen += os.read(terminal, 1000)
    os.close(terminal)
    if not select.select([os.pidfd_open(child)], [], [], 30)[0]:
        os.kill(child, signal.SIGKILL)
        sys.exit("it goes on without its terminal")
    _, status = os.waitpid(child, 0)
    ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
    print(ended)
    assert ended in (f"signal {int(signal.SIGHUP)}", "exit 141"), ended
    early = json.load(open(path))["ended_early"]
    assert early == "interrupted", early
P

# On a terminal of 80 columns, every table fits it; sentences are the terminal's to wrap.
for side in a b; do
  expect 0 "$COLBENCH" allreduce --size 1K --algo direct,ring -n 2 --launches 6 --max-time 10ms --bound off --json "$work/$side.json"
done
python3 - "$COLBENCH" "$work" <<'P' || fail "a table does not fit the terminal"
import fcntl, os, pty, re, struct, sys, termios
colbench, work = sys.argv[1:]
short = ["-n", "2", "--launches", "1", "--max-time", "10ms", "--bound", "off"]
commands = [["algorithms", "allreduce", "--size", "1K", *short],
            ["pairs", "--size", "8,1M", *short],
            ["noise", "allreduce", "--size", "1K", *short[:2], "--launches", "2", *short[4:]],
            ["compare", f"{work}/a.json", f"{work}/b.json"],
            ["simulate", "allreduce", "--ranks", "16", "--alpha", "5us", "--beta", "1GB/s", "--sizes", "1K,1M"]]
for command in commands:
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.environ["NO_COLOR"] = "1"
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # no progress line
        os.execv(colbench, [colbench, *command])
    text = b""
    while True:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # what a terminal says when its last process has ended
            break
        if not data:
            break
        text += data
    _, status = os.waitpid(child, 0)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).replace("\r", "").split("\n")
    # A table's lines begin above a rule and end where a sentence begins.
    table = [line for i, line in enumerate(lines) if "  " in line.strip() and not line.startswith("#") or set(line) == {"\u2500"} or set(line) == {"-"}]
    wide = [line for line in table if len(line) > 80]
    assert os.waitstatus_to_exitcode(status) == 0 and len(table) > 2 and not wide, (command, status, wide, lines)
P
nothing_left
