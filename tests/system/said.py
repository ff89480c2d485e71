"""What colrun, colbench, colcheck and coljob say to terminals of any width, without colours, to a pipe, to a reader that has gone, and
with stderr closed."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios

TOOLS = {os.path.basename(program): program for program in sys.argv[1:]}
# Something short that each has to say.
RUNS = {"colrun": ["--dry-run", "-n", "2", "true"], "colcheck": ["--only", "plans", "--np", "2", "--seed", "1"], "coljob": ["ps"],
        "colbench": ["simulate", "allreduce", "--ranks", "8", "--sizes", "1K,1M", "--alpha", "5us", "--beta", "1GB/s"]}
COLOUR = re.compile("\x1b\\[[0-9;]*m")


def on_terminal(columns, *command, **variables):
    """The exit code, and the text."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(command[0], command, {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **variables})
    text = b""
    while True:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # what a terminal says when its last process has ended
            break
        if not data:
            break
        text += data
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), text.decode().replace("\r\n", "\n")


def run(*command, **how):
    return subprocess.run(command, stdin=subprocess.DEVNULL, text=True, timeout=60, **{"capture_output": True, **how})


def closed_stderr(*command):
    return run("sh", "-c", 'exec "$0" "$@" 2>&-', *command)


def check_help(program):
    piped = {option: run(program, option) for option in ("-h", "--help", "--help-all")}
    assert all(said.returncode == 0 and not said.stderr for said in piped.values()), piped
    assert piped["-h"].stdout == piped["--help"].stdout
    for option in "--help", "--help-all":
        words = piped[option].stdout.split()
        for columns in 60, 80, 200:
            code, text = on_terminal(columns, program, option)
            wide = [line for line in text.split("\n") if len(line) > min(columns, 80)]
            assert code == 0 and not wide, (program, option, columns, wide)
            assert text.split() == words, (program, option, columns, "other words")
        assert on_terminal(200, program, option)[1] == piped[option].stdout, "a wide terminal shows what a pipe gets"
    assert piped["--help"].stdout.count("\n") <= 24, program


def check_closed(tool, program):
    for option in "--help", "--help-all", "--version":
        said = run("sh", "-c", 'exec "$0" "$1" >&-', program, option)
        assert said.returncode not in (0, -signal.SIGPIPE) and said.stderr.startswith(f"{tool}: cannot write to stdout: "), (option, said)
        assert said.stderr.count("\n") == 1, said


def check_said(tool, program):
    command = [program, *RUNS[tool]]
    plain = run(*command)
    assert plain.returncode == 0 and plain.stdout, plain
    assert "\x1b" not in plain.stdout + plain.stderr and "\r" not in plain.stdout + plain.stderr, plain
    for columns in 60, 80, 200:
        code, text = on_terminal(columns, *command, NO_COLOR="1")
        assert code == 0 and not COLOUR.search(text), (command, columns, text)
    # The first line is enough for its reader: no complaint, and nothing else.
    piped = run("bash", "-c", '"$0" "$@" | head -n 1; exit "${PIPESTATUS[0]}"', *command)
    assert piped.returncode in (0, 141) and piped.stderr == plain.stderr, piped
    assert piped.stdout.count("\n") == 1, piped

    # A reader that has gone before: SIGPIPE, or 141, which a shell makes of it.
    for words in command[1:], ["--help-all"]:
        reader, writer = os.pipe()
        os.close(reader)
        gone = run(program, *words, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        assert gone.returncode in (141, -signal.SIGPIPE) and gone.stderr.count("\n") <= 1, (words, gone)

    # Nobody hears the error; files that are opened next are not written to in its place.
    said = closed_stderr(*command)
    assert (said.returncode, len(said.stdout.split("\n"))) == (0, len(plain.stdout.split("\n"))), said
    assert closed_stderr(program, "--nonsense").returncode == 2
    with tempfile.TemporaryDirectory() as folder:
        if tool in ("colrun", "colcheck"):
            file = os.path.join(folder, "result.json")
            words = ["-n", "1", "sh", "-c", "echo lost >&2"] if tool == "colrun" else command[1:]
            assert closed_stderr(program, "--json", file, *words).returncode == 0
            with open(file, encoding="utf8") as text:
                assert text.read().startswith("{"), tool


for name, path in TOOLS.items():
    check_help(path)
    if name != "colbench":  # which has replaced what is closed before it knows its command
        check_closed(name, path)
    check_said(name, path)
