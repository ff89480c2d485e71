"""Reads C++ as clang-format writes it: which text is code, and which functions there are. No compiler is asked, as the same
must be found again after files have moved.
"""
import re

# Comments, and literals, whose characters mean nothing to the search; numbers, for the ' in them.
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<d>[^(]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\b\d[\w.']*|'(?:\\.|[^'\\\n])+'""", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
LAMBDA = re.compile(r"\]\s*(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?\s*(?:mutable|noexcept|->\s*[\w:<>*&, ]+|\s)*$")
OPENERS, CLOSERS = "([{", ")]}"


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_directives(code):
    """Preprocessor lines are blank, and so is all between an #if and its #endif: this machine may not compile it."""
    def in_conditions(code):
        depth, end = 0, 0
        for found in DIRECTIVE.finditer(code):
            yield (code if depth == 0 else blank(code))[end:found.start()]
            yield blank(found.group())
            word = found.group().strip().lstrip("# ")
            depth += word.startswith("if")
            depth -= word.startswith("endif")
            end = found.end()
        yield code[end:]
    return "".join(in_conditions(code))


class Source:
    """A file: `code` is its text without comments, `mask` has no literals either; all have the same length."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        is_comment = lambda token: token.startswith(("//", "/*"))
        self.code = without_directives(TOKEN.sub(lambda found: blank(found.group()) if is_comment(found.group()) else found.group(), text))
        self.mask = without_directives(
            TOKEN.sub(lambda found: found.group() if found.group()[0].isdigit() else blank(found.group()), text))
        self.partner = self.pairs()

    def pairs(self):
        """Where the bracket ends that begins at a place, and the other way round. Empty if they do not fit."""
        partner, stack = {}, []
        for found in re.finditer(r"[()\[\]{}]", self.mask):
            if found.group() in OPENERS:
                stack.append(found.start())
            elif not stack or OPENERS.index(self.mask[stack[-1]]) != CLOSERS.index(found.group()):
                return {}
            else:
                partner[found.start()] = stack[-1]
                partner[stack.pop()] = found.start()
        return partner if not stack else {}

    def words(self, begin, end):
        """The code there, in one line."""
        return " ".join(self.code[begin:end].split())

    def line(self, place):
        return self.text.count("\n", 0, place) + 1

    def functions(self):
        return list(self.functions_in(0, len(self.mask), [])) if self.partner else []

    def functions_in(self, place, end, classes):
        """Those between two places of a namespace or a class."""
        begin = place  # of the declaration that is read
        while place < end:
            char = self.mask[place]
            if char in ";}":
                begin = place + 1
            elif char in "([":
                place = self.partner[place]
            elif char == "{":
                closing = self.partner[place]
                header = Header(self.mask[begin:place])
                if header.is_namespace or header.class_name:
                    yield from self.functions_in(place + 1, closing, classes + [header.class_name] * bool(header.class_name))
                elif header.function and not header.is_initializer:
                    yield Function(self, place, closing, header, classes)
                # What follows a member's initializer, or the braces of a default value, still belongs to the declaration.
                if header.is_namespace or (header.function and not header.is_initializer):
                    begin = closing + 1
                place = closing
            place += 1


class Header:
    """What stands before a brace in a namespace or a class."""

    def __init__(self, text):
        text = re.sub(r"\b(public|private|protected)\s*:(?!:)|\[\[.*?\]\]|\balignas\([^()]*\)", " ", text, flags=re.S)
        text = self.without_templates(text).strip()
        self.is_namespace = bool(re.match(r"(inline\s+)?namespace\b|extern\s*$", text))
        found = re.match(r"(?:class|struct|union)\s+([\w:]+)(?![\w:]*\s*[&*\w:]*\()", text)
        self.class_name = found.group(1) if found else ""
        self.function = self.result = ""
        opening = text.find("(")
        while opening > 0 and re.search(r"\b(decltype|noexcept|requires|explicit|__attribute__)\s*$", text[:opening]):
            closing = self.closing(text, opening)
            text = text[:opening] + " " * (closing - opening + 1) + text[closing + 1:]
            opening = text.find("(")
        if opening > 0 and not self.class_name and not re.match(r"enum\b", text):
            if text[:opening].rstrip().endswith("operator"):
                opening = text.find("(", opening + 1)
            named = re.search(r"(?:[\w:]+::)?operator\s*[^\s\w]+$|(?:[\w:]+::)?operator\s[\w:*& ]+$|[\w:~]+$", text[:opening].rstrip())
            if named and not re.search(r"(?<!operator)(?<![=<>!])=(?!=)", text[:named.start()]):
                self.function, self.result = " ".join(named.group().split()), text[:named.start()].strip()
        after = text[self.closing(text, opening) + 1:] if opening > 0 else ""
        has_initializers = re.search(r"(?<!:):(?!:)", after) is not None
        self.is_initializer = has_initializers and bool(re.search(r"[\w>]$", text))

    @staticmethod
    def closing(text, opening):
        depth = 0
        for place in range(opening, len(text)):
            depth += (text[place] == "(") - (text[place] == ")")
            if depth == 0:
                return place
        return len(text)

    @staticmethod
    def without_templates(text):
        """Without `template <...>`, in which parentheses are no function's."""
        while found := re.search(r"\btemplate\s*<", text):
            depth, place = 1, found.end()
            while place < len(text) and depth > 0:
                depth += (text[place] == "<") - (text[place] == ">" and text[place - 1] != "-")
                place += 1
            text = text[:found.start()] + text[place:]
        return text


class Function:
    def __init__(self, source, opening, closing, header, classes):
        self.source, self.begin, self.end = source, opening + 1, closing
        self.name = "::".join(classes + [header.function])
        words = header.result.split()
        self.is_constant = bool({"constexpr", "consteval"} & set(words))
        is_maker = not set(words) - {"inline", "explicit", "virtual"} and "operator" not in header.function
        self.is_void = words[-1:] == ["void"] or is_maker
        self.is_bool = words[-1:] == ["bool"]

    def inner(self, place):
        """The lambda or the function whose statement that is: where it begins and ends."""
        mask, partner = self.source.mask, self.source.partner
        begin, end = self.begin, self.end
        for found in re.finditer(r"\{", mask[self.begin:place]):
            opening = self.begin + found.start()
            if partner[opening] > place and LAMBDA.search(mask[max(self.begin, opening - 300):opening]):
                begin, end = opening + 1, partner[opening]
        return begin, end

    def ends_with_exit(self, begin, end):
        """Whether the last statement there leaves the function."""
        last = re.split(r"[;{}]", self.source.mask[begin:end].rstrip().rstrip(";"))[-1]
        return bool(re.match(r"\s*(return|throw)\b", last))
