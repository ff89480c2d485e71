"""The public headers as pages: their own comments as text, in their order, with what they declare as code above it."""

import posixpath
import re
import textwrap
from pathlib import Path
from typing import Iterator, Optional

import declarations
from declarations import Declaration, Group

INCLUDE = "src/lib/include/col"
NAME = r"~?[A-Za-z]\w*"
# A name in a sentence: in quotes of code, or with marks that no word has.
WORDS = re.compile(rf"`[^`]+`|<col/\w+\.hpp>|<col/col\.h>|docs/[\w./-]+\.md|{NAME}(?:::{NAME})+(?:\(\))?|{NAME}\(\)|\b[A-Za-z]+_\w+\b(?:=\w+)?"
                   r"|\b[A-Z][a-z]+[A-Z]\w+\b")


class Headers:
    def __init__(self, root: Path):
        self.pages = {path.name: list(declarations.header(path.read_text())) for path in sorted((root / INCLUDE).glob("*.h*"))}
        self.docs = root / "docs"
        self.places: dict[str, str] = {}  # Group::allreduce: group.hpp.md#Group::allreduce
        for name, groups in self.pages.items():
            self.find(name, groups, "")

    def find(self, page: str, groups: list[Group], scope: str) -> None:
        for group in groups:
            for declared in group.declarations:
                for name in declared.names:
                    self.places.setdefault(scope + name, f"{page}.md#{scope}{name}")
                    self.find(page, declared.body, f"{scope}{name}::")

    def place(self, word: str, scope: str, is_marked: bool) -> Optional[str]:
        """Of the name that a sentence in that scope means. One that is marked, as call() and Type::member, need not be of that scope."""
        while scope:
            if scope + word in self.places:
                return self.places[scope + word]
            scope = scope[:-2].rpartition("::")[0] + "::" if "::" in scope[:-2] else ""
        if word in self.places or not is_marked:
            return self.places.get(word)
        ends = [place for name, place in self.places.items() if name.endswith("::" + word)]
        return ends[0] if len(ends) == 1 else None

    def sentence(self, text: str, scope: str) -> str:
        def linked(found: re.Match[str]) -> str:
            word = found[0].strip("`")
            target = self.place(word.removeprefix("col::").removesuffix("()"), scope, re.search(r"::|\(\)$", word) is not None)
            if word.startswith("<col/"):
                target = word[5:-1] + ".md"
            elif word.startswith("docs/") and (self.docs / word[5:]).exists():
                target = "../" + word[5:]
            return f"[`{word}`]({target})" if target else f"`{word}`"

        done, at = "", 0
        for found in WORDS.finditer(text):
            done += self.plain(text[at:found.start()]) + linked(found)
            at = found.end()
        return done + self.plain(text[at:])

    def plain(self, text: str) -> str:
        return re.sub(r"([_\[\]]|(?<!\*)\*(?!\*))", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))

    def text(self, comment: list[str], scope: str, level: int) -> Iterator[str]:
        """A comment as Markdown. What is indented, and not in a list, is code or a table."""
        block: list[str] = []
        listed = False

        def ended() -> Iterator[str]:
            if block and block[0].startswith("  "):
                code = any(line.endswith((";", "}", "{")) for line in block)
                yield from [f"``` {'cpp' if code else 'text'}", *textwrap.dedent("\n".join(block)).split("\n"), "```"]
            elif block:
                yield self.sentence("\n".join(block), scope)
            block.clear()

        for line, after in zip(comment, [*comment[1:], ""]):
            if re.fullmatch("-{3,}", after) or re.fullmatch("-{3,}", line):
                yield from [*ended(), *([] if line.startswith("-") else ["", f"{'#' * level} {line}", ""])]
                continue
            item = line.startswith("- ")
            indented = line.startswith("  ") and not listed
            if not line or item or (block and indented != block[0].startswith("  ")):
                yield from ended()
                if not (item and listed):
                    yield ""
            listed = item or (listed and line.startswith("  "))
            if line:
                block.append(line)
        yield from [*ended(), ""]

    def said(self, lines: list[str]) -> Iterator[str]:
        if any(lines):
            yield from ['<div class="said" markdown>', "", *lines, "", "</div>", ""]

    def code(self, declared: list[Declaration]) -> list[str]:
        lines = [line for one in declared for line in one.text.split("\n")]
        if any(len(line) > 60 and " // " in line for line in lines):  # no narrow screen has room for the comment
            lines = [out for line in lines for out in above(line)]
        return ["``` cpp", *lines, "```", ""]

    def data(self, group: Group, scope: str, level: int) -> Iterator[str]:
        names = [name for one in group.declarations for name in one.names]
        ids = "".join(f'<a id="{scope}{name}"></a>' for name in names if self.is_here(scope + name))
        yield from self.said([ids, "", *self.text(group.comment, scope, level), *self.code(group.declarations)])

    def functions(self, group: Group, scope: str, level: int) -> Iterator[str]:
        first, *others = dict.fromkeys(name for one in group.declarations for name in one.names)
        place = f" {{ #{scope}{first} }}" if self.is_here(scope + first) else ""
        yield from [f"{'#' * level} " + ", ".join(f"`{name}`" for name in [first, *others]) + place, ""]
        yield from ["".join(f'<a id="{scope}{name}"></a>' for name in others if self.is_here(scope + name)), ""]
        yield from self.code(group.declarations)
        remarks = [one.remark[:1].upper() + one.remark[1:] + "." * (one.remark[-1] not in ".…") for one in group.declarations if one.remark]
        yield from self.said([*self.text(group.comment, scope, level + 1), *self.text(remarks, scope, level + 1)])

    def record(self, group: Group, scope: str, level: int) -> Iterator[str]:
        for one in group.declarations:
            inner = f"{scope}{one.names[0]}::"
            kind = "class" if "class " + one.names[0] in one.text else "struct"
            yield from [f"{'#' * level} {kind} `{one.names[0]}` {{ #{scope}{one.names[0]} }}", ""]
            yield from self.text(group.comment, inner, level + 1)
            if one.text != f"{kind} {one.names[0]}":
                yield from self.code([one])
            yield from self.scope(one.body, inner, level + 1)

    def group(self, group: Group, scope: str, level: int) -> Iterator[str]:
        """Declarations under one comment; without one, functions of one name stand together, and so do data."""
        parts: list[Group] = []
        for one in group.declarations:
            before = parts[-1].declarations[-1] if parts else one
            if not parts or one.kind != before.kind or (one.kind == "function" and one.names != before.names and not group.comment):
                parts.append(Group([] if parts else group.comment))
            parts[-1].declarations.append(one)
        for part in parts:
            yield from {"record": self.record, "function": self.functions, "data": self.data}[part.declarations[0].kind](part, scope, level)
        if not parts:
            yield from self.text([re.sub(r"^([A-Z][a-z]+(?: [a-z]+){0,2}\.) (?=[A-Z])", r"**\1** ", line) for line in group.comment], scope, level)

    def is_here(self, name: str) -> bool:
        """The first of that name has the place in the page."""
        if self.left.get(name) != self.at:
            return False
        del self.left[name]
        return True

    def scope(self, groups: list[Group], scope: str, level: int) -> Iterator[str]:
        inner = level
        for i, group in enumerate(groups):
            if group.title:
                of_it = groups[i + 1:next((j for j in range(i + 1, len(groups)) if groups[j].title), len(groups))]
                if not any(one.declarations for one in of_it):  # definitions, or what does not compile
                    continue
                yield from [f"{'#' * level} {group.title}", ""]
                yield from self.text(group.comment, scope, level + 1)
                inner = level + 1
            else:
                yield from self.group(group, scope, inner)

    def page(self, name: str) -> str:
        self.at, self.left = name, {name: place.partition(".md#")[0] for name, place in self.places.items()}
        return "\n".join([f"# &lt;col/{name}&gt;", "", *self.scope(self.pages[name], "", 2)])


def above(line: str) -> list[str]:
    """The comment behind a line, above it."""
    code, comment, text = line.partition(" // ")
    indent = " " * (len(code) - len(code.lstrip()))
    return [*textwrap.wrap(text, 60, initial_indent=indent + "// ", subsequent_indent=indent + "// "), code.rstrip()] if comment else [line]
