"""A program in a pseudo terminal, and what its screen shows.

The screen knows what coljob top writes: cursor home, erase to the end of the line and of the screen, colours, the
other screen, and the cursor. Anything else is an error.
"""
import codecs
import fcntl
import json
import os
import re
import select
import signal
import struct
import sys
import termios
import time

ESCAPES = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])")


class Screen:
    def __init__(self, lines, columns):
        self.other = False
        self.cursor = True
        self.plain = ""  # what was written to the user's own screen
        self.rest = ""
        self.strict_from = 0  # a frame for the size before may come for a moment
        self.size(lines, columns)

    def size(self, lines, columns):
        self.lines, self.columns = lines, columns
        self.rows = [[" "] * columns for _ in range(lines)]
        self.tones = [[""] * columns for _ in range(lines)]
        self.y = self.x = 0
        self.tone = ""

    def write(self, text):
        text = self.rest + text
        self.rest = ""
        at = 0
        while at < len(text):
            letter = text[at]
            if letter == "\x1b":
                found = ESCAPES.match(text, at)
                if not found:
                    if len(text) - at < 12:
                        self.rest = text[at:]
                        return
                    raise AssertionError(f"an escape that is not known: {text[at:at + 12]!r}")
                self.escape(found.group(1), found.group(2))
                at = found.end()
                continue
            at += 1
            if not self.other:
                self.plain += letter
            elif letter == "\n":
                self.y += 1
                assert self.y < self.lines or self.is_lenient(), "the screen scrolls"
                self.y = min(self.y, self.lines - 1)
            elif letter == "\r":
                self.x = 0
            else:
                if self.x >= self.columns and self.is_lenient():
                    continue
                assert self.x < self.columns, f"a line is wider than the screen: {self.row(self.y)!r} {letter!r}"
                self.rows[self.y][self.x] = letter
                self.tones[self.y][self.x] = self.tone
                self.x += 1

    def is_lenient(self):
        return time.monotonic() < self.strict_from

    def escape(self, numbers, letter):
        if letter == "H" and not numbers:
            self.y = self.x = 0
        elif letter == "K" and not numbers:
            self.rows[self.y][self.x:] = [" "] * (self.columns - self.x)
        elif letter == "J" and not numbers:
            for y in range(self.y + 1, self.lines):
                self.rows[y] = [" "] * self.columns
        elif letter == "m":
            self.tone = "" if numbers in ("", "0") else numbers
        elif (numbers, letter) in (("?1049", "h"), ("?1049", "l")):
            self.other = letter == "h"
            self.size(self.lines, self.columns)
        elif (numbers, letter) in (("?25", "h"), ("?25", "l")):
            self.cursor = letter == "h"
        else:
            raise AssertionError(f"an escape that is not known: {numbers}{letter}")

    def row(self, y):
        return "".join(self.rows[y]).rstrip()

    def text(self):
        return "\n".join(self.row(y) for y in range(self.lines))


class Terminal:
    """Runs `command` in it. Each wait has a deadline."""

    def __init__(self, command, lines=24, columns=80, environment=None):
        self.screen = Screen(lines, columns)
        self.decoder = codecs.getincrementaldecoder("utf-8")()  # what is read at once may end within a letter
        self.master, slave = os.openpty()
        self.resize_kernel(lines, columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(slave, fd)
            os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(environment or {})})
            os.execvp(command[0], command)
        self.status = None

    def resize_kernel(self, lines, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, lines, columns):
        self.screen.size(lines, columns)
        self.screen.strict_from = time.monotonic() + 2
        self.resize_kernel(lines, columns)

    def read(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.screen.write(self.decoder.decode(data))
        return bool(data)

    def until(self, what, holds, seconds=20):
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {seconds} s; the screen is\n{self.screen.text()}\n"
                                     f"--- and before\n{self.screen.plain}")
            self.read(0.05)

    def until_shown(self, pattern, seconds=20):
        self.until(f"shown: {pattern}", lambda: re.search(pattern, self.screen.text(), re.M), seconds)

    def type(self, keys):
        os.write(self.master, keys.encode())

    def ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def expect_end(self, code, seconds=20):
        """The program has ended, and the terminal is as it was."""
        self.until("the end", self.ended, seconds)
        while self.read(0.05):
            pass
        found = os.waitstatus_to_exitcode(self.status)
        assert found == code, f"exit code {found} instead of {code}: {self.screen.plain}"
        assert not self.screen.other, "the other screen is still shown"
        assert self.screen.cursor, "the cursor is hidden"
        assert termios.tcgetattr(self.slave) == self.before, "the terminal has other settings"
        os.close(self.slave)
        os.close(self.master)


def wait_for_job(coljob, ranks):
    """Until the job runs, and its ranks have made calls."""
    import subprocess
    end = time.monotonic() + 30
    while True:
        found = subprocess.run([coljob, "ps"], capture_output=True, text=True).stdout
        if re.search(rf"^[0-9-]+-[0-9a-f]+ +{ranks} ", found, re.M):
            return
        assert time.monotonic() < end, f"no job: {found}"
        time.sleep(0.05)


def shows(terminal, *patterns):
    """In the frame that is shown, of which so far only the first lines may have been read."""
    for pattern in patterns:
        terminal.until_shown(pattern, 5)


def look_at_job(coljob, job_pid):
    """`coljob top` on a job of three ranks that runs until it is told to end."""
    terminal = Terminal([coljob, "top"])
    terminal.until_shown(r"^ +2 +(in a call|waiting|computing) .*%.*%")
    shows(terminal, r"^[0-9-]+-[0-9a-f]+ +3 ranks +[0-9.]+ s +", r"^rank +state +.*calls/s +wait +data/s +RSS +CPU$",
          r"^s sort: interest +k stacks +p pause +d dump +q quit$")
    assert " pid " not in terminal.screen.text()
    # A wider and a lower one.
    terminal.resize(50, 160)
    terminal.until_shown(r"^rank +pid +state +.*group +.*queued")
    terminal.resize(6, 60)
    terminal.until_shown(r"^and [23] more: ")
    terminal.resize(24, 80)
    terminal.until_shown(r"^s sort: interest")
    # Its keys.
    for order in ("rank", "calls", "waiting", "CPU", "RSS", "interest"):
        terminal.type("s")
        terminal.until_shown(rf"^s sort: {order}  ")
    terminal.type("p")
    terminal.until_shown(r"^paused +s sort: interest +k stacks +p go on")
    clock = terminal.screen.row(0)
    frozen = time.monotonic() + 1.2
    while time.monotonic() < frozen:
        terminal.read(0.1)
    assert terminal.screen.row(0) == clock, "it goes on while it is paused"
    terminal.type("p")
    terminal.until("it goes on", lambda: terminal.screen.row(0) != clock)
    terminal.type("d")
    terminal.until_shown(r"^wrote coljob-.*\.json; coljob why ")
    terminal.type("\x1b[A\x1b[1;5Ck")  # arrows are nothing
    terminal.until_shown(r"^any key: back to the ranks$", 40)
    shows(terminal, r"stack of rank [0-2] ")
    terminal.type(" ")
    terminal.until_shown(r"^rank +state")
    terminal.type("x")
    terminal.until_shown(r"^there is no key 'x'")
    # A stop, as ^Z makes it, needs a shell that continues it; SIGSTOP does not.
    os.kill(terminal.pid, signal.SIGSTOP)
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.type("q")
    terminal.expect_end(0)
    # ^C, and signals from elsewhere.
    terminal = Terminal([coljob, "top"])
    terminal.until_shown(r"^s sort")
    terminal.type("\x03")
    terminal.expect_end(-signal.SIGINT)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        terminal = Terminal([coljob, "top"])
        terminal.until_shown(r"^s sort")
        os.kill(terminal.pid, number)
        terminal.expect_end(-number)
    # A terminal that can do nothing gets one frame.
    terminal = Terminal([coljob, "top"], environment={"TERM": "dumb"})
    terminal.expect_end(0)
    assert re.search(r"^rank +(pid +)?state", terminal.screen.plain, re.M), terminal.screen.plain
    # The job ends meanwhile.
    terminal = Terminal([coljob, "top"])
    terminal.until_shown(r"^s sort")
    os.kill(job_pid, signal.SIGTERM)
    terminal.expect_end(0)
    assert re.search(r"^job .* has ended", terminal.screen.plain, re.M), terminal.screen.plain


def look_at_hosts(coljob):
    """`coljob top` on host n1: ranks 0-1 are there, rank 2 on n2. The test stops and continues n2 when it is told to."""
    terminal = Terminal(["on", "n1", coljob, "top"], lines=100, columns=110)
    answers = r"^ +2 +n2 +([0-9]+ +)?(in a call|waiting|computing) .*%.*%"
    terminal.until_shown(answers)
    shows(terminal, r"^[0-9-]+-[0-9a-f]+ +3 ranks on 2 hosts ", r"^rank +host +(pid +)?state ", r"^ +0 +n1 +([0-9]+ +)?(in a call|waiting|comp)")
    assert "not answered" not in terminal.screen.text()
    # A dump of all; where the machine is busy, not at the first try.
    for _ in range(20):
        terminal.type("d")
        terminal.until_shown(r"^wrote coljob-.*")
        with open(re.search(r"coljob-\S*\.json", terminal.screen.row(terminal.screen.lines - 1)).group()) as file:
            ranks = len(json.load(file)["ranks"])
        if ranks == 3:
            break
        shows(terminal, r"^wrote coljob-\S* without 1 rank that did not answer in time; d again ")
    assert ranks == 3, f"{ranks} ranks in the dump"
    print("all are shown", flush=True)
    terminal.until_shown(r"^ +2 +n2 +([0-9]+ +)?no answer +.*\(allreduce")
    terminal.until_shown(r"^host n2 \(node 1, rank 2\) has not answered for [0-9.]+ s: its ranks are as they were$")
    shows(terminal, r"^ +0 +n1 +([0-9]+ +)?(waiting|in a call|computing)")
    y = next(y for y in range(terminal.screen.lines) if re.search(r"n2 .*no answer ", terminal.screen.row(y)))
    terminal.until("the whole line is marked", lambda: all(
        tone or letter == " " for tone, letter in zip(terminal.screen.tones[y], terminal.screen.row(y))), 5)
    clock = terminal.screen.row(0)
    terminal.until("the others go on", lambda: terminal.screen.row(0) != clock)
    print("n2 is silent", flush=True)
    terminal.until_shown(answers)
    terminal.until("n2 is there again", lambda: "not answered" not in terminal.screen.text())
    print("n2 is back", flush=True)
    # The launcher of this host: its page is still read.
    terminal.until_shown(r"^the launcher on this host has not answered for [0-9.]+ s: other hosts are as they were$")
    shows(terminal, r"^ +2 +n2 +([0-9]+ +)?no answer ", r"^ +0 +n1 +([0-9]+ +)?(in a call|waiting|computing)")
    print("n1 is silent", flush=True)
    terminal.until_shown(answers)
    terminal.type("k")
    terminal.until_shown(r"^any key: back to the ranks$", 40)
    shows(terminal, r"stack of (rank 0|ranks 0)", r"stack of ranks? .*2")
    terminal.type(" q")
    terminal.expect_end(0)


def watch_hosts(colrun, job):
    """`colrun --watch` on n1, whose job has a rank on n2, too."""
    command = ["on", "n1", colrun, "--watch", "--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "n1:29400", "-n", "1"]
    terminal = Terminal([*command, job, "0", "2000"])
    terminal.until_shown(r"^ +1 +n2 +([0-9]+ +)?(in a call|waiting|computing) .*%.*%", 40)
    terminal.until_shown(r"^ +0 +n1 +([0-9]+ +)?(in a call|waiting|computing) .*%.*%")
    print("all are shown", flush=True)
    terminal.expect_end(-signal.SIGTERM, 40)


def watch_job(colrun, job):
    """`colrun --watch`, and what the ranks print."""
    script = 'echo "rank $COL_RANK begins"; exec "$0" "$@"'
    command = [colrun, "--watch", "-n", "2", "sh", "-c", script, job]
    terminal = Terminal([*command, "2000", "2000"])
    terminal.until_shown(r"^ +1 +([0-9]+ +)?(in a call|waiting|computing) .*%.*%")
    assert "begins" not in terminal.screen.text(), "the output is in the view"
    terminal.expect_end(0, 40)
    for rank in range(2):
        assert f"rank {rank} begins\r\n" in terminal.screen.plain, terminal.screen.plain
    # The view is left, and the job goes on; then it is interrupted.
    terminal = Terminal([*command, "0", "2000"])
    terminal.until_shown(r"^s sort")
    terminal.type("q")
    terminal.until("the output after the view", lambda: terminal.screen.plain.count("begins") == 2)
    assert not terminal.ended()
    terminal.type("\x03")
    terminal.expect_end(-signal.SIGINT)
    assert "interrupted by SIGINT" in terminal.screen.plain, terminal.screen.plain
    # Interrupted while it is shown.
    terminal = Terminal([*command, "0", "2000"])
    terminal.until_shown(r"^s sort")
    terminal.type("\x03")
    terminal.expect_end(-signal.SIGINT)
    # The launcher is killed: its view gives the terminal back. The shell keeps the terminal alive.
    terminal = Terminal(["sh", "-c", '"$0" "$@"; echo "code $?"; read line', *command, "0", "2000"])
    terminal.until_shown(r"^s sort")
    terminal.screen.strict_from = time.monotonic() + 60  # the shell writes to whichever screen is shown
    with open(f"/proc/{terminal.pid}/task/{terminal.pid}/children") as children:
        os.kill(int(children.read().split()[0]), signal.SIGKILL)
    terminal.until("the user's screen", lambda: not terminal.screen.other)
    terminal.type("\n")
    terminal.expect_end(0)


if __name__ == "__main__":
    if sys.argv[1] == "top":
        wait_for_job(sys.argv[2], 3)
        look_at_job(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "hosts":
        look_at_hosts(sys.argv[2])
    elif sys.argv[1] == "watch-hosts":
        watch_hosts(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "watch":
        watch_job(sys.argv[2], sys.argv[3])
    else:
        sys.exit(2)
