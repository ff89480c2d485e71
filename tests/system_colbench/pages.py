#!/usr/bin/env python3
"""The HTML reports, opened in a browser: what a person sees of them, in wide windows and narrow ones, light and dark.

pages.py BROWSER COLBENCH COLCHECK [FOLDER]: with FOLDER, pages and pictures of them stay there.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from browser import Browser

browser_program, colbench, colcheck = sys.argv[1:4]
SHORT = ["--launches", "1", "--max-time", "20ms", "--bound", "off"]
# name: command, sections, and what the page must show in the words of the terminal.
PAGES = {
    "sizes": ([colbench, "allreduce,broadcast", "--sizes", "1K,64K,1M", "--algo", "auto,mst", "-n", "2", *SHORT],
              ["Figures", "All rows", "Machine", "Run", "Repeat it"]),
    "machine": ([colbench, "allreduce", "--size", "64K", "-n", "2", "--launches", "1", "--max-time", "20ms", "--bound", "warn"],
                ["Figures", "All rows", "Machine", "Run", "Repeat it"]),
    "algorithms": ([colbench, "algorithms", "allreduce", "--size", "64K", "-n", "2", "--algo", "direct,ring,mst", *SHORT],
                   ["Ranking", "Figures", "All rows", "Machine", "Run", "Repeat it"]),
    "pairs": ([colbench, "pairs", "-n", "2", "--size", "8", *SHORT], ["Maps", "Figures", "All rows", "Machine", "Run", "Repeat it"]),
    "colcheck": ([colcheck, "--quick", "--only", "exact", "--backend", "shm", "--np", "2"], ["Support matrix", "Properties", "Skipped", "Run"]),
}
# For every page: what is seen, measured in the browser.
LOOK = """(() => {
  const box = e => { const r = e.getBoundingClientRect(); return {top: r.top, width: r.width, height: r.height, right: r.right}; };
  const all = s => [...document.querySelectorAll(s)];
  const colour = text => text.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
                       return .2126 * r + .7152 * g + .0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor);
                                                        if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  const contrast = e => { const a = light(colour(getComputedStyle(e).color).slice(0, 3)), b = light(ground(e));
                          return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); };
  const worded = all('h1,h2,h3,p,li,td,th,dt,dd,code,caption,summary,a').filter(e => e.textContent.trim() && box(e).height > 0);
  return {
    text: document.body.innerText, title: document.title,
    h1: box(document.querySelector('h1')), summary: all('.verdict, h1 + p').map(box),
    nav: document.querySelector('nav') && box(document.querySelector('nav')),
    links: all('nav a').map(a => [a.textContent, (document.querySelector(a.getAttribute('href') + ' > h2') || {}).textContent]),
    sections: all('section > h2').map(h => h.textContent),
    page_width: document.documentElement.scrollWidth, window_width: innerWidth,
    charts: all('svg.chart').filter(svg => !svg.querySelector('rect')).map(svg => ({...box(svg), lines: svg.querySelectorAll('polyline:not(.bound)').length,
      words: [...svg.querySelectorAll('text')].map(t => box(t).height), points: svg.querySelectorAll('path title').length})),
    bar_words: all('svg.chart:has(rect) text').map(t => box(t).height),
    keys: all('.key li').map(e => e.textContent.trim()),
    bars: all('svg.chart:has(rect)').slice(0, 1).flatMap(svg => { const texts = [...svg.querySelectorAll('text:not(.what)')];
      return [...svg.querySelectorAll('rect')].map((r, i) => [texts[2 * i].textContent, box(r).width, texts[2 * i + 1].textContent]); }),
    tables: all('#ranking table').map(t => [...t.querySelectorAll('tr')].map(r => [...r.children].map(c => c.textContent))),
    notes: all('#ranking .notes li').map(e => e.textContent),
    least_contrast: Math.min(...worded.map(contrast)),
    faintest: worded.sort((a, b) => contrast(a) - contrast(b)).slice(0, 1).map(e => e.outerHTML.slice(0, 200)),
    ground: ground(document.body)};
})()"""


def words(text):
    return re.sub(r"\s+", " ", text).strip()


def check(name, width, scheme, sections, terminal, problems, asked, url, seen):
    def must(condition, what):
        assert condition, f"{name} at {width} pixels, {scheme}: {what}"

    must(not problems, f"the console has {problems}")
    must(asked == [url], f"it asks for {asked}")
    must(seen["page_width"] <= seen["window_width"], f"it is {seen['page_width']} pixels wide")
    must((sum(seen["ground"]) < 200) == (scheme == "dark"), f"the ground is {seen['ground']}")
    must(seen["least_contrast"] >= 4.5, f"contrast {seen['least_contrast']:.2f} of {seen['faintest']}")
    # The summary first, then the list of contents; each entry leads to the section of its name.
    must(seen["sections"] == sections, f"sections {seen['sections']}")
    must(seen["links"] == [[title, title] for title in sections], f"contents {seen['links']}")
    must(seen["summary"] and seen["h1"]["top"] < seen["summary"][0]["top"] < 400, f"the summary is at {seen['summary']}")
    must(max(part["top"] for part in seen["summary"]) < seen["nav"]["top"], "the contents list stands above the summary")
    must(min(seen["bar_words"], default=9) >= 9, f"the words of bars are {seen['bar_words']} pixels high")
    for chart in seen["charts"]:
        must(chart["width"] >= 300 and chart["right"] <= seen["window_width"], f"a chart's box is {chart}")
        must(min(chart["words"]) >= 9, f"a chart's words are {min(chart['words'])} pixels high")
        must(chart["lines"] > 0 and chart["points"] >= chart["lines"], f"a chart shows {chart}")
    # Whatever stands in a command's own table, the terminal said too, in the same words.
    printed = words(terminal)
    for line in [row for table in seen["tables"] for row in table] + [[note] for note in seen["notes"]]:
        for cell in line:
            must(words(cell) in printed, f"'{cell}' is not what the terminal said: {printed}")


def check_what_is_compared(name, seen):
    tables, bars, charts = seen["tables"], seen["bars"], seen["charts"]
    if name == "sizes":
        assert len(charts) == 4, charts  # time and bandwidth, of two operations
        assert all(chart["lines"] == 2 for chart in charts) and len(seen["keys"]) == 4, (charts, seen["keys"])
    if name == "algorithms":
        assert [row[0].rstrip("*") for row in tables[0][1:]] == ["1", "2", "3"], tables
        assert sorted(bar[0] for bar in bars) == sorted(row[1] for row in tables[0][1:]), (bars, tables)
        assert [bar[0] for bar in bars] == [row[1] for row in tables[0][1:]], "the bars have another order"
        assert [bar[1] for bar in bars] == sorted(bar[1] for bar in bars), bars
        assert not charts
    if name == "machine":
        assert "Memory bandwidth by" in seen["text"] and len(bars) == 1
    if name == "colcheck":
        assert "cases passed" in seen["text"] and "broadcast" in seen["text"]


def listen(name, browser, sections):
    """What the page is to a screen reader: roles, names and their order."""
    heard = browser.spoken()

    def named(role):
        return [node["name"] for node in heard if node["role"] == role]

    def place(role, called):
        return next(i for i, node in enumerate(heard) if node["role"] == role and node["name"] == called)

    headings = [(node["level"], node["name"]) for node in heard if node["role"] == "heading"]
    assert [level for level, _ in headings].count(1) == 1 and headings[0][0] == 1, (name, headings)
    assert [text for level, text in headings if level == 2] == sections, (name, headings)
    assert named("navigation") == ["Contents"] and named("main") == [""], (name, named("navigation"), named("main"))
    assert named("link") == sections, (name, named("link"))
    regions = named("region")
    assert [region for region in regions if region in sections] == sections or set(sections) <= set(regions), (name, regions)
    assert place("heading", headings[0][1]) < place("navigation", "Contents") < place("region", sections[0]), name
    verdict = next(i for i, node in enumerate(heard) if node["role"] == "StaticText" and node["name"].startswith(("✔", "✘", "–")))
    assert verdict < place("navigation", "Contents"), f"{name}: the verdict comes after the contents"
    pictures = [node for node in heard if node["role"] in ("image", "img")]
    assert all(node["name"] and ": " in node["description"] for node in pictures), (name, pictures)
    assert len(pictures) == browser.value("document.querySelectorAll('svg.chart').length"), (name, pictures)
    tables = named("table")
    assert tables and all(tables) and all(regions), f"{name}: tables {tables}, regions {regions}"
    for role in ("columnheader", "rowheader"):
        assert named(role), f"{name}: no {role}"


def use_keys(name, browser):
    """Everything that a mouse reaches, a keyboard does too."""
    wanted = browser.value("[...document.querySelectorAll('nav a, .wide, summary')].map(e => e.outerHTML.slice(0, 80))")
    reached = []
    for _ in wanted:
        browser.press("Tab", 9)
        reached.append(browser.value("document.activeElement.outerHTML.slice(0, 80)"))
        assert browser.value("getComputedStyle(document.activeElement).outlineStyle") != "none", f"{name}: no outline: {reached[-1]}"
        if reached[-1].startswith("<summary"):
            browser.press("Enter", 13, "\r")
            browser.until("document.activeElement.parentElement.open")
        if browser.value("document.activeElement.scrollWidth > document.activeElement.clientWidth + 20 && document.activeElement.matches('.wide')"):
            browser.press("ArrowRight", 39)
            browser.until("document.activeElement.scrollLeft > 0")
    assert reached == wanted, (name, reached, wanted)
    browser.value("document.querySelector('nav a:last-child').focus()")
    link = browser.value("document.activeElement.getAttribute('href')")
    browser.press("Enter", 13, "\r")
    browser.until(f"location.hash === {link!r}")


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        printed = {}
        for name, (command, _) in PAGES.items():
            ran = subprocess.run([*command, "--html", folder / f"{name}.html"], capture_output=True, text=True, timeout=100)
            assert ran.returncode == 0, f"{command}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
            printed[name] = ran.stdout
        opened = 0
        with Browser(browser_program, pathlib.Path(temporary) / "home") as browser:
            for name, (_, sections) in PAGES.items():
                url = (folder / f"{name}.html").resolve().as_uri()
                for width, scheme in ((1280, "light"), (1280, "dark"), (768, "light"), (400, "dark"), (400, "light")):
                    problems, asked = browser.open(url, width, 800, scheme)
                    seen = browser.value(LOOK)
                    if len(sys.argv) > 4:
                        browser.picture(folder / f"{name}-{width}-{scheme}.png")
                    check(name, width, scheme, sections, printed[name], problems, asked, url, seen)
                    check_what_is_compared(name, seen)
                    opened += 1
                listen(name, browser, sections)
                use_keys(name, browser)
        print(f"{opened} times looked at {len(PAGES)} pages")


main()
