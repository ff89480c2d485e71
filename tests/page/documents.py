#!/usr/bin/env python3
"""The pages of `scripts/dev page`: all links lead somewhere, every public name has its place, and what a person sees of them.

documents.py BROWSER [FOLDER]: with FOLDER, the pages and pictures of them stay there. An empty BROWSER: nobody looks at them.
"""

import ast
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root / "tests/support"), str(root / "scripts/page")]
import declarations
from browser import Browser

HEADER = """// About all of it.
#pragma once
namespace col {
namespace detail {
void hidden();
}  // namespace detail
class Later;

// ---- A part ---------

// Of two.
COL_EXPORT void first(std::function<void(int)> f = {}, const std::string& s = "a // b");  // NOLINT(no)
void second(int x);
// A thing: "}" is no end.
class COL_EXPORT Thing : public Base {
 public:
  explicit Thing(int x) : x_(x) {}
  // The number.
  int x() const noexcept { return x_; }
  Thing(const Thing&) = delete;
  std::map<int, int> a = {}, b = {};  // two
 private:
  // Nobody's.
  int x_;
};
inline void Thing::later() {
}
}  // namespace col
"""


def outline(groups):
    return [(group.title, group.comment, [(one.kind, one.names, one.text, outline(one.body)) for one in group.declarations]) for group in groups]


def check_declarations():
    said = outline(declarations.header(HEADER))
    thing = [("", [], [("data", [], "explicit Thing(int x);", [])]),
             ("", ["The number."], [("function", ["x"], "int x() const noexcept;", []), ("data", ["a", "b"], "std::map<int, int> a = {}, b = {};  // two", [])])]
    assert said == [
        ("", ["About all of it."], []), ("A part", [], []),
        ("", ["Of two."], [("function", ["first"], 'void first(std::function<void(int)> f = {}, const std::string& s = "a // b");', []),
                           ("function", ["second"], "void second(int x);", [])]),
        ("", ['A thing: "}" is no end.'], [("record", ["Thing"], "class Thing : public Base", thing)])], said
    said = outline(declarations.header("/* Of C.\n *   code */\nint32_t col_f(void);\n"))
    assert said == [("", ["Of C.", "  code"], [("function", ["col_f"], "int32_t col_f(void);", [])])], said


def public_names():
    """Names in packaging/abi, which a compiler's debug information has told, less what the headers call private."""
    headers = "\n".join(path.read_text() for path in (root / "src/lib/include/col").glob("*.h*"))
    private = set(re.findall(r"\w+", " ".join(text for _, text in re.findall(r"^( *) private:\n(.*?)^\1\};", headers, flags=re.M | re.S))))
    for baseline in (root / "packaging/abi").iterdir():
        for name in re.findall(r"^(?:function|alias|constant|size of(?: enum)?|member) (?:col::)?([\w:]+)(?! ?operator)", baseline.read_text(), flags=re.M):
            *scope, last = name.split("::")
            is_special = "operator" in last or last.startswith("_vptr") or (scope and scope[-1] == last) or name.endswith("::")
            if not is_special and name.split("::")[0] not in ("detail", "plan", "backend", "core") and not private & {last, *scope[1:]}:
                yield name


def places(page):
    return set(re.findall(r'id="([^"]+)"', page.read_text()))


def check_names(site):
    here = set().union(*(places(page) for page in (site / "api").glob("*.h*.html")))
    names = set(public_names())
    assert len(names) > 600, len(names)
    assert not names - here, f"no page has {sorted(names - here)}"
    package = ast.parse((root / "src/python/col/__init__.py").read_text())
    exported = next(ast.literal_eval(node.value) for node in package.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    # The free functions are those of ray.util.collective, col.run and col.ranks those of col.launch.
    shown = {place.replace(f".{part}.", ".") for part in ("_", "ray", "launch", "tracing") for place in places(site / f"api/col.{part}.html".replace("._", ""))}
    missing = {f"col.{name}" for name in exported} - shown - {"col.plan", "col.version"}
    assert not missing, f"no page has {sorted(missing)}"


def look(browser, site, pictures):
    grounds = {}
    for page in ("index.html", "performance.html", "man/colrun.1.html", "api/group.hpp.html", "api/col.html"):
        for width, scheme in ((1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")):
            problems, asked = browser.open((site / page).as_uri(), width, 900, scheme)
            where = f"{page}, {width} wide, {scheme}"
            assert not problems, f"{where}: {problems}"
            outside = [address for address in asked if not address.startswith(("file:", "data:"))]
            assert not outside, f"{where} asks for {outside}"
            wide = browser.value("document.documentElement.scrollWidth")
            assert wide <= width, f"{where}: {wide} wide"
            grounds[scheme] = sum(map(int, re.findall(r"\d+", browser.value("getComputedStyle(document.body).backgroundColor"))[:3]))
            if pictures:
                browser.picture(pictures / f"{page.replace('/', '_')}-{width}-{scheme}.png")
        assert grounds["dark"] < 200 < 600 < grounds["light"], grounds
    browser.open((site / "index.html").as_uri(), 400, 900, "light")
    browser.value("document.querySelector('label[for=__search]').click()")
    browser.value("document.querySelector('[data-md-component=search-query]').focus()")
    browser.ask("Input.insertText", text="iallreduce")
    browser.press("Shift", 16)
    browser.until("[...document.querySelectorAll('.md-search-result__link')].some(link => /group.hpp.html.*#Group::iallreduce$/.test(link.href))")


def main():
    check_declarations()
    missing = [name for name in ("mkdocs", "material", "mkdocstrings", "black") if importlib.util.find_spec(name) is None]
    missing += [] if shutil.which("mandoc") else ["mandoc"]
    if missing:
        print(f"skipped: there is no {', '.join(missing)}; scripts/test --all installs it")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        kept = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
        site = (kept or work) / "pages"
        done = subprocess.run([sys.executable, "-B", "-m", "mkdocs", "build", "--strict", "--site-dir", site], cwd=root,
                              env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        # Warnings count only where they are heard: --quiet would take them from --strict.
        assert done.returncode == 0 and "INFO" in done.stdout, done.stdout
        check_names(site)
        if not sys.argv[1]:
            print("no browser has looked at the pages: scripts/test --all installs one where the distribution has it")
            return
        with Browser(sys.argv[1], work / "home") as browser:
            look(browser, site, kept)


main()
