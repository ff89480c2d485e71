"""Options in the documents' commands are options of the tools. doc_options.py ROOT COLRUN COLBENCH COLCHECK"""

import pathlib
import re
import subprocess
import sys

root, *programs = sys.argv[1:]
commands = [[program] for program in programs]
commands += [[programs[1], *c.split()] for c in ("compare", "noise", "algorithms", "tune", "explain", "simulate", "draw", "pairs",
                                                  "self-test")]
known = {"--agent"}  # in no --help: colrun starts itself with it
for command in commands:
    text = subprocess.run([*command, "--help-all"], check=True, capture_output=True, text=True).stdout
    known |= {name for line in re.findall(r"^  (-\S+)", text, flags=re.M) for name in line.split(",") if name.startswith("--")}
problems, seen = [], 0
pages = [pathlib.Path(root) / "README.md", *(page for page in sorted((pathlib.Path(root) / "docs").rglob("*.md"))
                                            if "decisions" not in page.parts and "gpu-results" not in page.parts)]
for page in pages:
    text = page.read_text()
    lines = re.findall(r"`([^`\n]+)`", text) + [line for block in re.findall(r"^```\w*\n(.*?)^```", text, flags=re.M | re.S)
                                                for line in block.replace("\\\n", " ").split("\n")]
    for line in lines:
        match = re.search(r"(?:^|[ /])(colrun|colbench|colcheck) (.*)", line.split("#")[0].split(" | ")[0])
        if not match:
            continue
        words = match[2].split()
        # Options of colrun end at its program.
        if match[1] == "colrun":
            program = next((i for i, word in enumerate(words) if "/" in word and not word.startswith("-")), len(words))
            words = words[:program]
        for word in words:
            option = word.split("=")[0].strip("'\"[](),;:")
            if re.fullmatch(r"--[a-z][a-z-]+", option):
                seen += 1
                if option not in known and option.replace("--no-", "--") not in known:
                    problems.append(f"{page.name}: {option} is no option of the tools: {line.strip()}")
print(seen, "options in", len(pages), "pages")
print(*problems, sep="\n")
sys.exit(1 if problems or seen < 50 else 0)
