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

# Whatever the terminal's width is, nothing is wider; and what it shows while it runs is gone at the end.
for side in a b; do
  expect 0 "$COLBENCH" allreduce --size 1K --algo direct,ring -n 2 --launches 6 --max-time 10ms --bound off --json "$work/$side.json"
done
python3 - "$COLBENCH" "$work" <<'P' || fail "the terminal does not show what it should (above)"
import fcntl, os, pty, re, struct, sys, termios
colbench, work = sys.argv[1:]


def seen(columns, *command):
    """Its exit code, and what it wrote to the terminal."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.environ.update(NO_COLOR="1", TERM="xterm")
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
    return os.waitstatus_to_exitcode(status), text.decode().replace("\r\n", "\n")


short = ["-n", "2", "--launches", "1", "--max-time", "10ms", "--bound", "off"]
commands = [["algorithms", "allreduce", "--size", "1K", *short, "-q"],
            ["pairs", "--size", "8,1M", *short, "-q"],
            ["noise", "allreduce", "--size", "1K", *short[:2], "--launches", "2", *short[4:], "-q"],
            ["compare", f"{work}/a.json", f"{work}/b.json"],
            ["simulate", "allreduce", "--ranks", "16", "--alpha", "5us", "--beta", "1GB/s", "--sizes", "1K,1M"]]
for columns in 60, 80, 200:
    first_use = [["allreduce", "--size", "32M", *short, "-q"], ["allreduce", "--sizes", "1K:64K:x8", "--algo", "ring,auto", *short, "-q"]]
    for command in first_use + (commands if columns == 80 else []):
        code, text = seen(columns, *command)
        assert "-q" not in command or "\r" not in text, (command, text)
        left = re.sub("[^\\n]*\r(\x1b\\[K)?", "", text).split("\n")  # without what has been drawn over
        wide = [line for line in left if len(line) > columns]
        assert code == 0 and len(left) > 3 and not wide, (columns, command, code, wide, text)

# Each launch draws over what is there, and the last one leaves an empty line.
code, text = seen(80, "allreduce", "--size", "1K", *short[:2], "--launches", "2", *short[4:])
drawn = re.findall(r"\r([^\r\n]*)\x1b\[K", text)
assert code == 0 and drawn and all(len(line) < 80 for line in drawn), (code, text)
assert any("launch 1/2, starting 2 ranks" in line for line in drawn), drawn
assert any("cells, launch 2/2, allreduce 1K auto" in line for line in drawn), drawn
assert drawn[-1] == "" and "\r" not in text[text.index("# colbench"):], text
P
nothing_left
