#!/usr/bin/env python3
"""Links in the documents lead somewhere, and what they tell to run is there. docs.py ROOT"""

import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
pages = [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md")), *sorted((root / "src").rglob("*.md"))]
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


def check_commands(page, dev):
    text = page.read_text()
    for command in re.findall(r"scripts/dev ([a-z][a-z-]+)", text):
        if command not in dev:
            problems.append(f"{page.relative_to(root)}: scripts/dev has no {command}")
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


usage = subprocess.run([root / "scripts/dev", "--help"], check=True, capture_output=True, text=True).stdout
dev = set(re.findall(r"^  ([a-z][a-z-]+)(?= |$)", usage, flags=re.M))
for page in pages:
    check_links(page)
    check_tests(page)
    if page.name != "CHANGELOG.md" and "decisions" not in page.parts:
        check_commands(page, dev)
check_engines(root / "docs/clusters.md")
print(len(pages), "pages,", len(dev), "commands of scripts/dev")
print(*problems, sep="\n")
sys.exit(1 if problems else 0)
