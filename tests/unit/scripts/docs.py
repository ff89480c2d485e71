#!/usr/bin/env python3
"""Links in the documents lead somewhere, what they tell to run is there, and numbers are those of the code. docs.py ROOT"""

import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
pages = [*sorted(root.glob("*.md")), *sorted((root / ".github").rglob("*.md")), *sorted((root / "docs").rglob("*.md")), *sorted((root / "src").rglob("*.md"))]
problems = []


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def anchors(page):
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', page.read_text()))
    for line in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), flags=re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line)
        found.add(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-"))
    return found


def check_links(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            problems.append(f"{page.relative_to(root)}: there is no {target}")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            problems.append(f"{page.relative_to(root)}: {path or page.name} has no #{anchor}")


# Readers of Markdown differ in how far the inside of a list is indented, and whether a list may follow a line of text: 4, and not.
def check_lists(page):
    fenced, before = False, ""
    for number, line in enumerate(page.read_text().split("\n"), 1):
        where = f"{page.relative_to(root)}:{number}"
        fence = re.match(r" *```", line)
        if re.match(r" {1,3}```" if fence else r" {1,3}[-*] ", line) and (fence or not fenced):
            problems.append(f"{where}: indent what is inside of a list by 4")
        if not fenced and re.match(r"[-*] ", line) and before.strip() and not re.match(r"[-*] |  ", before):
            problems.append(f"{where}: leave a line free before a list")
        fenced, before = fenced ^ bool(fence), line


def check_commands(page, dev):
    text = page.read_text()
    for command in re.findall(r"scripts/dev ([a-z][a-z-]+)", text):
        if command not in dev:
            problems.append(f"{page.relative_to(root)}: scripts/dev has no {command}")
    # Another Python may come first in PATH. A line of a session begins with "$ ".
    if re.search(r"^python3 -m venv", text, flags=re.M):
        problems.append(f"{page.relative_to(root)}: it is /usr/bin/python3 that has the distribution's packages")
    for script in re.findall(r"(?:^|[ `])(scripts/[a-z-]+|\.ci/[a-z]+)", text, flags=re.M):
        if not (root / script).exists():
            problems.append(f"{page.relative_to(root)}: there is no {script}")


def check_tests(page):
    for test in re.findall(r"`(tests/[^`*]+)`", page.read_text()):
        if not (root / test.split()[0]).exists():
            problems.append(f"{page.relative_to(root)}: there is no {test}")


# Each engine's row names tests that a build runs.
def check_engines(page):
    section = re.search(r"^## Engines$(.*?)^## ", page.read_text(), flags=re.M | re.S)
    rows = re.findall(r"^\|(.*)\|$", section.group(1), flags=re.M)[2:]
    for row in rows:
        engine, *_, run_by = [cell.strip() for cell in row.split(" | ")]
        tests = [pathlib.PurePath(test) for test in re.findall(r"`(tests/[^`]+)`", run_by)]
        if not tests:
            problems.append(f"{page.relative_to(root)}: no test runs {engine}")
        for test in tests:
            listed = "".join(file.read_text() for file in (root / test.parent).glob("meson.build"))
            if f"'{test.stem}'" not in listed and f"'{test.name}'" not in listed:
                problems.append(f"{page.relative_to(root)}: {engine}: no build runs {test}")
    if len(rows) < 15:
        problems.append(f"{page.relative_to(root)}: {len(rows)} engines")


# What a page says and the code knows: (page, what it says there, file, what that says). The groups must be equal.
FACTS = [
    ("docs/debugging.md", r"last ([\d,]+) operations", "src/lib/include/col/job.hpp", r"kRecordedCalls = (\d+)"),
    ("docs/architecture.md", r"last ([\d,]+) operations", "src/lib/include/col/job.hpp", r"kRecordedCalls = (\d+)"),
    ("docs/clusters.md", r"`--rdzv-timeout`\s+\((\d+) minutes\)", "src/tools/colrun/job_options.cpp", r"rdzv-timeout.*default: (\d+)m"),
    ("docs/clusters.md", r"`--term-grace` \((\d+) s\)", "src/tools/colrun/job_options.cpp", r"term-grace.*default: (\d+)s"),
    ("docs/clusters.md", r"grace period \((\d+) s\)", "src/tools/colrun/job_options.cpp", r'"--grace".*default: (\d+)s'),
    ("docs/coming-from.md", r"`COL_TIMEOUT`, else (\d+) minutes", "src/lib/core/env.cpp", r'"COL_TIMEOUT", .*"(\d+)m"'),
    ("docs/guide.md", r"`COL_TIMEOUT`, (\d+) minutes", "src/lib/core/env.cpp", r'"COL_TIMEOUT", .*"(\d+)m"'),
    ("docs/architecture.md", r"four fifths of `COL_HOST_TIMEOUT`", "src/tools/launch/nodes/pulse.hpp", r"host_timeout \* 4 / 5"),
    ("docs/benchmarking.md", r"the plan of (\d+) ranks at most", "src/tools/colbench/plans/draw.cpp", r"kMostDrawnRanks = (\d+)"),
    ("docs/benchmarking.md", r"of up to (\d+) as JSON", "src/tools/colbench/plans/draw.cpp", r"kMostRanks = (\d+)"),
    ("docs/man/colrun.1", r"Up to (\d+) KiB of a line", "src/tools/launch/output/line_mux.hpp", r"kMaxHeld = (\d+) \* 1024"),
    *[("docs/man/colrun.1", re.escape(words), "src/tools/launch/output/line_mux.hpp", re.escape(words))
      for words in ("[line continues]", "[line continued]")],
    *[(f"docs/{page}.md", r"(?i)integers wrap", "src/lib/include/col/group.hpp", r"Integers wrap")
      for page in ("guide", "python", "torch", "ray", "coming-from")],
    ("docs/install.md", r"`memfd_create`", "src/lib/backend/shm/segment/shared_file.cpp", r"::memfd_create\("),
    ("docs/install.md", r"col-(\d+\.\d+\.\d+)-x86_64\.tar\.gz", "meson.build", r"version: '([\d.]+)'"),
    ("docs/install.md", r"find_package\(col (\d+\.\d+) REQUIRED\)", "meson.build", r"version: '(\d+\.\d+)\.\d+'"),
    ("docs/install.md", r"version: '>=(\d+\.\d+)'", "meson.build", r"version: '(\d+\.\d+)\.\d+'"),
    ("docs/wheel.md", r"libcol-(\d+\.\d+\.\d+)-cp", "meson.build", r"version: '([\d.]+)'"),
    ("docs/guide.md", r"takes (\d\.\d) ms in such memory, and (\d\.\d) ms in private memory", "docs/performance.md",
     r"allreduce in place \| 32 MiB \| (?P<private>[\d,]+) \| (?P<shared>[\d,]+)"),
]


def values(match):
    groups = match.groupdict()
    if groups:  # microseconds in the table, milliseconds in the sentence
        return tuple(f"{int(groups[name].replace(',', '')) / 1000:.1f}" for name in ("shared", "private"))
    return tuple(group.replace(",", "") for group in match.groups())


def check_facts():
    for page, says, source, knows in FACTS:
        said = re.search(says, (root / page).read_text())
        known = re.search(knows, (root / source).read_text())
        if not said or not known:
            problems.append(f"{page if not said else source} no longer says {says if not said else knows!r}: mend FACTS in docs.py")
        elif values(said) != values(known):
            problems.append(f"{page} says {' and '.join(values(said))}, and {source} {' and '.join(values(known))}")


usage = subprocess.run([root / "scripts/dev", "--help"], check=True, capture_output=True, text=True).stdout
dev = set(re.findall(r"^  ([a-z][a-z-]+)(?= |$)", usage, flags=re.M))
for page in pages:
    check_links(page)
    check_lists(page)
    check_tests(page)
    if page.name != "CHANGELOG.md" and "decisions" not in page.parts:
        check_commands(page, dev)
check_engines(root / "docs/clusters.md")
check_facts()
index = (root / "docs/README.md").read_text()
problems += [f"docs/README.md does not name {page.name}" for page in sorted((root / "docs").glob("*.md"))
             if page.name != "README.md" and f"({page.name}" not in index]
print(len(FACTS), "numbers,", len(pages), "pages,", len(dev), "commands of scripts/dev")
print(*problems, sep="\n")
sys.exit(1 if problems else 0)
