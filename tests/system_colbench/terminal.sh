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
[ "$code" = 141 ] || fail "exit code $code, not 141, with nowhere to write"

# The terminal closes while ranks run: SIGHUP, and nowhere to print. What was found is in the file.
python3 - "$COLBENCH" "$work" <<'P' || fail "the terminal's end was not colbench's own"
import json, os, pty, signal, sys, time
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
    deadline = time.monotonic() + 30
    status = None
    while status is None and time.monotonic() < deadline:
        done, found = os.waitpid(child, os.WNOHANG)
        if done: status = found
        else: time.sleep(0.01)
    if status is None:
        os.kill(child, signal.SIGKILL)
        sys.exit("it goes on without its terminal")
    ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
    print(ended)
    assert ended in (f"signal {int(signal.SIGHUP)}", "exit 141"), ended
    early = json.load(open(path))["ended_early"]
    assert early == "interrupted", early
P
nothing_left
