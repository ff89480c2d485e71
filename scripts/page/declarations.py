"""What a public header declares, in its order: comments, sections and declarations. The headers are as clang-format leaves them."""

import re
from dataclasses import dataclass, field
from typing import Iterator, Optional

# What is no part of the interface, or is said where it is declared.
LEFT_OUT = re.compile(r"namespace \w+ \{|friend |static_assert|extern |(class|struct|enum class) \w+;|#")
RECORD = re.compile(r"(?:template <.*?> )?(?:typedef )?(?:class|struct) (?:\[\[.*?\]\] |COL_EXPORT )*(\w+)(?: final)?(?: : [^{]*?)? ?\{")
ENUM = re.compile(r"(?:typedef )?enum (?:class )?(\w*)[^{;]*\{")


@dataclass
class Declaration:
    text: str  # without comments behind it, attributes and bodies of functions
    kind: str  # record, function, data (no heading of its own)
    names: list[str]
    remark: str = ""  # the comment behind it, of a function
    body: list["Group"] = field(default_factory=list)


@dataclass
class Group:
    """Declarations that stand together, and the comment above them. A section has a title, and a comment alone no declaration."""
    comment: list[str]
    declarations: list[Declaration] = field(default_factory=list)
    title: str = ""


def code_of(line: str, text: str = r"\1") -> str:
    """Without the comment behind it, and with `text` in place of strings and characters."""
    return re.sub(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'?)|\s*(?://.*|/\*.*?\*/)""", lambda found: found.expand(text) if found[1] else "", line)


def c_comments(lines: list[str]) -> Iterator[str]:
    """Comments of C as those of C++."""
    inside = False
    for line in lines:
        if inside or re.match(r"\s*/\*", line):
            inside = "*/" not in line
            text = re.sub(r"^(\s*)(/\*| \*|  (?= ))", r"\1//", line.replace("*/", "").rstrip())
            if text.strip() not in ("", "//") or inside:
                yield text
        else:
            yield re.sub(r"/\* (.*?) \*/", r"// \1", line)


def statement(lines: list[str], at: int) -> int:
    """The line behind the statement that begins there."""
    depth = 0
    while at < len(lines):
        code = code_of(lines[at], "0")
        depth += sum(code.count(c) for c in "({[") - sum(code.count(c) for c in ")}]")
        at += 1
        if depth == 0 and (code.endswith((";", "}")) or lines[at - 1].startswith("#")):
            return at
    raise ValueError("a declaration has no end: " + lines[-1])


def head(text: str) -> str:
    """A function without its body and what it initializes."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if depth == 0 and ")" in text[:i] and (c == "{" or (c == ":" and ":" not in (text[i - 1], text[i + 1]))):
            return text[:i].rstrip() + ";"
    return text


def broken(text: str) -> str:
    """A function of many arguments has one a line."""
    if max(map(len, text.split("\n"))) <= 84 or "(" not in text:
        return text
    depth, parts, start = 0, [], text.index("(") + 1
    for i, c in enumerate(text):
        depth += (c in "([{<") - (c in ")]}>" and text[i - 1] not in "-=")
        if i >= start and (depth, c) in ((1, ","), (0, ")")):
            parts.append(text[start:i + (c == ",")].strip())
            start = i + 1
            if c == ")":
                return text[:text.index("(") + 1] + "\n    " + "\n    ".join(parts) + text[i:]
    return text


def flat(text: str, brackets: str) -> str:
    """Without what stands in such brackets."""
    inner = rf"\{brackets[0]}[^{re.escape(brackets)}]*\{brackets[1]}"
    while re.search(inner, text):
        text = re.sub(inner, "", text)
    return text


def declaration(lines: list[str]) -> Optional[Declaration]:
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    lines = [re.sub(r"\s*// (NOLINT|gcc 12 takes).*", "", line[indent:]) for line in lines]
    code = re.sub(r"\[\[gnu::.*?\]\] ?|requires\([^()]*\) ", "", " ".join(code_of(line).strip() for line in lines))
    plain = flat(code, "<>")  # a type such as std::function<void(int)> has no parentheses then
    before = plain.partition("(")[0]
    if LEFT_OUT.match(code) or ("(" in plain and " = " not in before and "::" in before.rpartition(" ")[2]):
        return None
    if record := RECORD.match(code):
        body = next(i for i, line in enumerate(lines) if code_of(line).endswith("{")) + 1
        return Declaration(re.sub(r"(COL_EXPORT|typedef) ", "", record[0]).rstrip(" {"), "record", [record[1]], body=list(groups(lines[body:-1])))
    if enum := ENUM.match(code):
        names = [enum[1]] if enum[1] else re.findall(r"(\w+)(?: = [^,]*)?(?:,|$)", code[enum.end():].partition("}")[0].strip())
        return Declaration("\n".join(lines).replace("COL_EXPORT ", ""), "data", names)
    if code.endswith("= delete;"):  # what does not compile: docs/errors.md lists it
        return None
    code = re.sub(r"\b(COL_EXPORT|COL_API) ", "", code)
    if pointer := re.search(r"\(\*(\w+)\)", code.split(",")[0]):
        return Declaration("\n".join(lines), "data", [pointer[1]])
    if "(" in plain and " = " not in before:
        remark = re.search(r"[;}]\s*// (.*)$", lines[-1])
        name = re.search(r"\S (\w+)$", re.sub(r"\b(template|explicit|constexpr) ", "", before).strip())
        if not name or "operator" in before:  # a constructor, and its like
            return Declaration(broken(head(code)) + ("  // " + remark[1] if remark else ""), "data", [])
        template = re.match(r"(?:template <.*?> )?", code)[0]
        text = "\n".join(filter(None, (template.strip(), broken(head(code[len(template):])))))
        return Declaration(text, "function", [name[1]], remark[1] if remark else "")
    alias = re.search(r"\b(?:using|concept) (\w+)", code)
    parts = flat(flat(flat(plain, "{}"), "()"), "[]").rstrip(";").split(",")
    return Declaration("\n".join(lines), "data", [alias[1]] if alias else [re.search(r"(\w+)(?: = .*)?$", part)[1] for part in parts])


def groups(lines: list[str]) -> Iterator[Group]:
    lines, at, group, hidden = [*lines, ""], 0, Group([]), False
    while at < len(lines):
        line = lines[at].strip()
        comment, start = [], at
        while line.startswith("//"):
            comment.append(re.sub(r"^// ?", "", line))
            at += 1
            line = lines[at].strip()
        if comment:
            if group.comment or group.declarations or group.title:
                yield group
            title = re.match(r"---- (.*?) -+$", comment[0])
            comment = [text for text in comment[bool(title):] if not text.startswith("clang-format")]
            group = Group(comment, title=title[1] if title else "")
            if title:
                yield group
                group = Group([])
        elif access := re.match(r"(public|private|protected):$", line):
            hidden = access[1] != "public"
            at += 1
        elif not line or line.startswith("#"):
            if group.comment or group.declarations:
                yield group
            group = Group([])
            at += 1
        else:
            at = statement(lines, start)
            if not hidden and (found := declaration(lines[start:at])):
                group.declarations.append(found)
            elif not group.declarations:
                group = Group([])
    if group.comment or group.declarations:
        yield group


def header(text: str) -> Iterator[Group]:
    lines = text.split("\n")
    if "/*" in text.lstrip()[:2]:
        lines = [line for line in c_comments(lines) if line not in ('extern "C" {', "}")]
    yield from groups([line for line in lines if not re.match(r"namespace col \{|\}  // namespace col$", line)])
