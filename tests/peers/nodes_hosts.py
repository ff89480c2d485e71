"""Hosts that are network namespaces of this machine, made by nodes_hosts.sh."""

import contextlib
import os
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INTERFACE = "eth0"


class NoHosts(Exception):
    """They cannot be made here; the text says why."""


class Hosts:
    """`number` of them, as long as the object is entered. `folder` is one that they and this process share."""

    def __init__(self, number, folder, processors, colrun):
        self.names = [f"n{i + 1}" for i in range(number)]
        self._folder, self._processors, self._colrun = folder, processors, colrun
        self._rate = ""

    def __enter__(self):
        environment = {**os.environ, "COLRUN": self._colrun, "TMPDIR": str(self._folder)}
        self._maker = subprocess.Popen(
            ["bash", str(HERE / "nodes_hosts.sh"), str(len(self.names)), " ".join(map(str, self._processors))],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        self.work = self._answer("ready")
        return self

    def __exit__(self, *_):
        self._maker.stdin.close()
        self._maker.wait()
        self._maker.stdout.close()
        self._maker.stderr.close()

    def _answer(self, word):
        while line := self._maker.stdout.readline():
            if line.startswith(word):
                return line.removeprefix(word).strip()
            if line.startswith("skipped:"):
                raise NoHosts(line.removeprefix("skipped:").strip())
        raise NoHosts(self._maker.stderr.read().strip() or "nodes_hosts.sh has ended")

    def _tell(self, line):
        self._maker.stdin.write(line + "\n")
        self._maker.stdin.flush()
        self._answer("done")

    def hold_links_to(self, rate):
        """As tc writes it; empty: as fast as the kernel is."""
        if rate == self._rate:
            return
        if self._rate:
            self._tell("free")
        if rate:
            self._tell(f"shape {rate}")
        self._rate = rate

    def on(self, host, *command):
        return [f"{self.work}/bin/on", self.names[host], *map(str, command)]

    @property
    def ssh(self):
        """A program that is ssh from one host to another."""
        return f"{self.work}/bin/host_ssh"

    @property
    def environment(self):
        """What programs on hosts need to have."""
        return {"HOSTS_OF_TEST": f"{self.work}/hosts", "TMPDIR": f"{self.work}/tmp"}


@contextlib.contextmanager
def scratch_folder(prefix):
    """In memory: ranks of all hosts meet there, and a file system on a disk would write it out now and then."""
    folder = tempfile.mkdtemp(prefix=prefix)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=False)
        os.rmdir(folder)
