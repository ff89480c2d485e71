"""Where mutants can be: what the code says at a place, and the text that goes before and behind it so that a number makes the
program do something else there.

  condition   an `if`, a `while`, a `?:` or a returned truth is turned
  bound       a comparison or a difference is off by one
  exit        an early return, throw or continue is not taken
  fence       the memory order of one access is relaxed
  effect      an assignment or an increment is skipped

A place has a name that does not depend on its file: the function, the text, and which of the equal texts in that function.
"""
import collections, re

KINDS = ("condition", "bound", "exit", "fence", "effect")
TEST = "::col_mutants::is(@)"  # @ is the number
# Public headers are compiled into other people's programs, and kernels by another compiler.
LEFT_OUT = re.compile(r"src/lib/include/|nccl/kernels/")
LOGGING = re.compile(r"\blog::|\bstatic_assert\b|\brequires\b|\bassert\(|\bif constexpr\b")
DECLARATION = re.compile(r"(?:const\s+)?[\w:]+(?:<.*>)?(?:\s*[*&]+\s*|\s+)(?:const\s+)?(?:\w+|\[[^\]]*\])\s*(?:=(?!=)|\{)", re.S)
# Of what is skipped, no part is a declaration: one word stands before the sign.
EFFECT = re.compile(r"(?:\+\+|--)[^;=?]+;|\*?[\w.:]+(?:->[\w.]+|\[[^\]\n]*\]|\(\)\.?)*\s(?:=|\+=|-=|\|=|&=|\^=)\s[^;]+;")

# `body` is where the function begins; `before` and `behind` go around what lies between `begin` and `end`.
Site = collections.namedtuple("Site", "kind function text path body begin end before behind")


def room_of(path):
    """src/lib/group/join/x.cpp → group/join. A folder of few files belongs to the one above it."""
    parts = path.split("/")[2:-1]
    if parts[0] in ("backend", "transport") and len(parts) > 1 or parts[0] == "group" and parts[1:2] in (
            ["join"], ["adopt"], ["api"], ["call"], ["diagnosis"], ["health"], ["flight"], ["run"]):
        return "/".join(parts[:2])
    return parts[0]


def find(source):
    """All places of a source. Two that stand in functions of the same name, with the same text, are told apart later."""
    if LEFT_OUT.search(source.path):
        return
    for function in source.functions():
        if function.is_constant:
            continue
        for search in (conditions, choices, truths, bounds, exits, fences, effects):
            for kind, begin, end, text, before, behind in search(source, function):
                if not LOGGING.search(source.mask[start_of_statement(source, begin):source.mask.find(";", end) + 1]):
                    yield Site(kind, function.name, text, source.path, function.begin, begin, end, before, behind)


def start_of_statement(source, place):
    return max(source.mask.rfind(sign, 0, place) for sign in ";{}") + 1


def matches(pattern, source, function):
    return re.compile(pattern).finditer(source.mask, function.begin, function.end)


def turned(source, begin, end, text):
    while source.mask[begin].isspace():
        begin += 1
    return "condition", begin, end, text, f"({TEST} != static_cast<bool>(", "))"


def conditions(source, function):
    for found in matches(r"\b(if|while) \(", source, function):
        opening = found.end() - 1
        closing = source.partner[opening]
        begin = max(opening, source.mask.rfind(";", opening, closing)) + 1  # behind what an `if` declares first
        words = source.words(begin, closing)
        if words not in ("true", "") and not DECLARATION.match(words):
            yield turned(source, begin, closing, f"{found.group(1)} ({words})")


def choices(source, function):
    """The condition of a ?: that begins where an expression does."""
    for found in matches(r"\s\? ", source, function):
        begin = back_to_start(source, found.start(), function.begin)
        words = source.words(begin, found.start())
        if words and not DECLARATION.match(words):
            yield turned(source, begin, found.start(), f"{words} ?")


def back_to_start(source, place, limit):
    start = re.compile(r"(?: =| \+=|\breturn| <<|[,;:?])\s$")
    end = place
    while place > limit:
        if source.mask[place - 1] in ")]}":
            place = source.partner[place - 1]
            continue
        if source.mask[place - 1] in "([{" or start.search(source.mask[max(limit, place - 10):place]):
            break
        place -= 1
    while place < end and source.mask[place].isspace():
        place += 1
    return place


def truths(source, function):
    if not function.is_bool:
        return
    for found in matches(r"\breturn ([^;{}]+);", source, function):
        words = source.words(found.start(1), found.end(1))
        if words not in ("true", "false") and function.inner(found.start())[0] == function.begin and " ? " not in words:
            yield turned(source, found.start(1), found.end(1), f"return {words};")


def bounds(source, function):
    # `a <= b` is `a < b + 1`, and `a > b` is `a >= b + 1`.
    for found in matches(r"(?<=[\w)\]]) (<|<=|>|>=)\s+(?=[-!(\w:])", source, function):
        more = "" if found.group(1) in ("<", ">=") else "-"
        text = source.words(start_of_operand(source, found.start()), end_of_operand(source, found.end()))
        yield "bound", found.end(), found.end(), text, f"{more}int({TEST}) + ", ""
    for found in matches(r"(?<=[\w)\]]) [+-]\s+1(?![\w.'])", source, function):
        text = source.words(start_of_operand(source, found.start()), found.end())
        yield "bound", found.end() - 1, found.end(), text, "(", f" - int({TEST}))"


def exits(source, function):
    for found in matches(r"\bif \(", source, function):
        closing = source.partner[found.end() - 1]
        left = re.compile(r"\s+((?:return|throw)\b[^;{}]*|continue);(?!\s*else\b)").match(source.mask, closing + 1, function.end)
        # A return of braces, and of a lambda, is left alone.
        if not left:
            continue
        begin, end = function.inner(found.start())
        is_void = function.is_void and begin == function.begin
        # What goes on instead has to come to a return of its own.
        if left.group(1) != "continue" and not is_void and not (
                function.ends_with_exit(begin, end) and source.mask[left.end():end].strip()):
            continue
        yield "exit", left.start(1), left.end(), source.words(found.start(), left.end()), f"{{ if (!{TEST}) ", " }"


def fences(source, function):
    for found in matches(r"\bstd::memory_order_(release|acquire|seq_cst|acq_rel)\b", source, function):
        opening = found.start()
        while source.mask[opening] != "(" or source.partner[opening] < found.start():
            opening -= 1
        begin, end = start_of_operand(source, opening), source.partner[opening] + 1
        call = source.code[begin:end]
        weak = call[:found.start() - begin] + "std::memory_order_relaxed" + call[found.end() - begin:]
        if "(" in source.mask[begin:end] and source.mask[begin:opening].strip():
            yield "fence", begin, end, source.words(begin, end) + f" [{found.group(1)}]", f"({TEST} ? {' '.join(weak.split())} : ", ")"


def start_of_operand(source, place):
    """Where a call begins whose opening parenthesis is there: back over names, members, indices and calls."""
    while True:
        if re.match(r"[\w.:>]", source.mask[place - 1]) and source.mask[place - 2:place] not in ("> ", "=>"):
            place -= 1 if source.mask[place - 2:place] != "->" else 2
        elif source.mask[place - 1] in ")]":
            place = source.partner[place - 1]
        else:
            return place


def end_of_operand(source, place):
    while True:
        found = re.compile(r"[-!]*(?:[\w.:]|->|<[\w:]+[ *&]*>(?=\(|::))+").match(source.mask, place)
        place = found.end() if found else place
        if source.mask[place] not in "([":
            return place
        place = source.partner[place] + 1


def effects(source, function):
    for found in re.compile(EFFECT).finditer(source.mask, function.begin, function.end):
        before = source.mask[:found.start()].rstrip()
        # It begins a statement; what an `if` in one line does is one, too.
        if not (before[-1] in ";{}" or before[-1] == ")" and is_control(source, len(before) - 1) or before.endswith("else")):
            continue
        # No block, and not the last part of a `for`.
        if "{" in found.group() or not is_whole(source, found.start(), found.end()):
            continue
        yield ("effect", found.start(), found.end(), source.words(found.start(), found.end()), f"{{ if (!{TEST}) ", " }")


def is_whole(source, begin, end):
    """Whether each bracket there has its other one there."""
    return all(begin <= source.partner[found.start() + begin] < end for found in re.finditer(r"[()\[\]{}]", source.mask[begin:end]))


def is_control(source, closing):
    return bool(re.search(r"\b(if|while|for) $", source.mask[:source.partner[closing]][-8:]))


def named(sources):
    """All places of the sources by their names: (kind, function, text, which of the equal ones) → Site. Where several functions have
    the same name and text, none of them has a name."""
    groups = collections.defaultdict(list)
    for source in sources:
        for site in find(source):
            groups[site.kind, site.function, site.text].append(site)
    return {key + (which,): site for key, equal in groups.items() if len({(site.path, site.body) for site in equal}) == 1
            for which, site in enumerate(sorted(equal, key=lambda site: site.begin), 1)}


def changed(source, placed):
    """The text of a source with mutants in it: (number, site)."""
    inserted = []
    for number, site in placed:
        # At one place, what ends there comes first, the inner before the outer; then what begins, the outer before the inner.
        inserted.append((site.begin, 1, -site.end, site.before.replace("@", str(number))))
        if site.behind:
            inserted.append((site.end, 0, -site.begin, site.behind.replace("@", str(number))))
    parts, last = [], 0
    for place, _, _, text in sorted(inserted):
        parts += [source.text[last:place], text]
        last = place
    return "".join(parts) + source.text[last:]
