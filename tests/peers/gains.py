"""The opening of the document: what a user gains, from the tables below it.

python3 gains.py docs/performance.md
"""

import pathlib
import re
import sys

import picture
import report

COMMAND = "tests/peers/gains.py"
RANKS = (2, 4, 8)
CALLS = (("allreduce", "8 B"), ("allreduce", "32 KiB"), ("allreduce", "1 MiB"), ("allreduce", "32 MiB"), ("broadcast", "1 MiB"),
         ("alltoall", "1 MiB"))


def ratio_of(row):
    """Of the cell "1.22 (1.08 to 1.37)"; None where there is none."""
    found = re.match(r"[\d.]+", row["best ÷ col (95 %)"])
    return float(found.group()) if found else None


def call_cell(rows, operation, size):
    for row in rows:
        if row["operation"] == operation and row["size"] == size and (ratio := ratio_of(row)):
            return f"{picture.microseconds(row['col']):,g} µs, **{ratio:.2f} ×**"
    return "–"


def start_times(page, name):
    """Milliseconds from the start to the first barrier of a job of 2 and of 8 ranks, by the launcher of that name."""
    table = page[page.index("| start to the first barrier done |"):]
    line = next(line for line in table.splitlines() if name in line)
    return [cell.strip(" *") for cell in line.strip("|").split("|")][1:3]


def text(page):
    tables = {ranks: picture.first_table(page, ranks)[1] for ranks in RANKS}
    lines = report.as_table(["a call on one host", *(f"{ranks} ranks" for ranks in RANKS)],
                            [[f"{operation} of {size}", *(call_cell(tables[ranks], operation, size) for ranks in RANKS)]
                             for operation, size in CALLS])
    (_, ours), (_, theirs) = start_times(page, "colrun"), start_times(page, "mpirun")
    return "\n".join([*lines, "", f"A job of 8 ranks has its first barrier behind it {float(ours):.0f} ms after `colrun` was typed; "
                                  f"with Open MPI's `mpirun` it takes {float(theirs):.0f}."])


def write(document):
    report.write_into(document, text(document.read_text()), COMMAND)


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
