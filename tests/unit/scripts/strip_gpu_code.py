"""strip-gpu-code on made-up libraries: usage: strip_gpu_code.py SCRIPT"""
import os
import struct
import subprocess
import sys
import tempfile

SCRIPT = sys.argv[1]
PTX, CUBIN = 1, 2


def entry(kind, architecture, payload, header_bytes=64):
    header = struct.pack('<HHIQ', kind, 257, header_bytes, len(payload))
    header += bytes(12) + struct.pack('<I', architecture)
    return header.ljust(header_bytes, b'\1') + payload


def container(*all_entries):
    body = b''.join(all_entries)
    return struct.pack('<IHHQ', 0xba55ed50, 1, 16, len(body)) + body


def strip(library, *options):
    """The exit code, the output, and what was written (None: nothing)."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = os.path.join(folder, 'before'), os.path.join(folder, 'after')
        with open(before, 'wb') as file:
            file.write(library)
        done = subprocess.run([sys.executable, SCRIPT, *options, before, after], capture_output=True, text=True, timeout=60)
        written = None
        if os.path.exists(after):
            with open(after, 'rb') as file:
                written = file.read()
        return done.returncode, done.stdout + done.stderr, written


def check(condition, what):
    if not condition:
        sys.exit(f'FAILED: {what}')


NINETY, HUNDRED = entry(CUBIN, 90, b'n' * 100), entry(CUBIN, 100, b'h' * 3000, 112)
TEXT = entry(PTX, 90, b't' * 50, 96)
MAGIC = struct.pack('<I', 0xba55ed50)
# The magic number alone, one before a container that would end beyond the library, and an entry that ends beyond its
# container: none of them is touched.
CUT = struct.pack('<IHHQ', 0xba55ed50, 1, 16, 1 << 40) + b'c' * 100
BROKEN = bytearray(container(entry(CUBIN, 100, b'b' * 100)))
struct.pack_into('<Q', BROKEN, 16 + 8, 101)
OTHER = b'code ' + MAGIC + b' code ' + CUT + bytes(BROKEN)


def library(ninety, hundred, text):
    return OTHER + container(hundred, ninety, text) + b'between' + container(ninety) + container() + hundred + MAGIC


def blank(whole, payload_bytes):
    return whole[:-payload_bytes] + bytes(payload_bytes)


code, said, written = strip(library(NINETY, HUNDRED, TEXT))
check(code == 0, said)
# The last HUNDRED is in no container.
check(written == OTHER + container(blank(HUNDRED, 3000), NINETY, blank(TEXT, 50)) + b'between' + container(NINETY) +
      container() + HUNDRED + MAGIC, 'what is for sm_90 stays, the other payloads are blank, and all else is the same')
code, said, written = strip(library(NINETY, HUNDRED, TEXT), '--arch', 'sm_90,sm_100,compute_90')
check(code == 0 and written == library(NINETY, HUNDRED, TEXT), f'all stays: {said}')

code, said, written = strip(library(NINETY, HUNDRED, TEXT), '--arch', 'sm_90,sm_80')
check(code == 1 and written is None, 'an architecture that is not there')
check('no code for sm_80: it has compute_90, sm_100, sm_90' in said, said)
code, said, written = strip(b'nothing')
check(code == 1 and 'it has no code for GPUs at all' in said, said)
code, said, written = strip(b'', '--arch', '90')
check(code == 2 and "--arch takes names like sm_90" in said, said)
