#include "common/page.hpp"

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::tools {
namespace {

// Every text colour has a contrast of at least 4.5 to its background. Symbols and words repeat what colours say.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --text: #1b1f24; --faint: #59616b; --page: #ffffff; --panel: #f5f7f9;
  --line: #d8dde3; --good: #0f5c2e; --good-back: #e3f5e9; --bad: #9c1414; --bad-back: #fde7e7;
  --odd: #6d4600; --odd-back: #fff3d6; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ec; --faint: #a3adb8; --page: #14171a; --panel: #1d2226; --line: #363d45;
    --good: #7edc9c; --good-back: #15321f; --bad: #ff9f9a; --bad-back: #45191a; --odd: #f0c56b; --odd-back: #3a2e10; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 72rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { margin: 0 0 1rem; font-size: 1.6rem; }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.2rem; }
h3 { margin: 1.75rem 0 .5rem; font-size: 1rem; }
a { color: inherit; }
nav ol { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 1.5rem 0 0; padding: .6rem 1rem;
  list-style: none; background: var(--panel); border-radius: .25rem; }
code { font-family: ui-monospace, monospace; font-size: .875em; overflow-wrap: anywhere; }
.verdict { padding: .75rem 1rem; border-left: .4rem solid; border-radius: .25rem; font-weight: 600; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: 1rem 0; }
.facts dt { color: var(--faint); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 1rem 0;
  background: linear-gradient(to left, var(--page) 1rem, transparent) right / 2.5rem 100% no-repeat local,
    linear-gradient(to left, var(--line), transparent) right / .9rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { position: sticky; left: 0; width: max-content; max-width: min(60rem, calc(100vw - 2.5rem));
  padding: 0 0 .5rem; text-align: left; color: var(--faint); }
th, td { text-align: left; white-space: nowrap; }
thead th { background: var(--panel); }
td.words { white-space: normal; }
.note, .notes { color: var(--faint); }
.notes { margin: .5rem 0 1rem; padding-left: 1.2rem; }
.warnings { margin: .25rem 0 0; padding-left: 1.2rem; color: var(--odd); }
p.warnings { padding-left: 0; }
.number { text-align: right; }
@media (max-width: 40rem) {
  body { padding: 1rem .9rem 3rem; }
  .facts { grid-template-columns: 1fr; gap: 0; }
  .facts dd { margin-bottom: .6rem; }
}
)";

std::string contents(const std::vector<PageSection>& sections) {
  if (sections.size() < 2) return {};
  std::string text = "<nav aria-label=\"Contents\"><ol>\n";
  for (const PageSection& section : sections)
    text += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section.id, markup(section.title));
  return text + "</ol></nav>\n";
}

}  // namespace

std::string page_text(const Page& page) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n{}",
      markup(page.title), kStyle, page.style, markup(page.heading), page.summary);
  text += contents(page.sections);
  for (const PageSection& section : page.sections)
    text += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", section.id, markup(section.title),
                        section.body);
  return text + page.data + "</main>\n</body>\n</html>\n";
}

}  // namespace col::tools
