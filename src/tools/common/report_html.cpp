#include <algorithm>

#include <fmt/format.h>

#include "common/report.hpp"
#include "common/text.hpp"

namespace col::tools {
namespace {

// Every text colour has a contrast of at least 4.5 to its ground. Symbols and words repeat what colours say.
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
:focus-visible { outline: .15rem solid var(--text); outline-offset: .15rem; }
nav ol { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 1.5rem 0 0; padding: .6rem 1rem;
  list-style: none; background: var(--panel); border-radius: .25rem; }
code { font-family: ui-monospace, monospace; font-size: .875em; overflow-wrap: anywhere; }
pre { padding: .75rem 1rem; background: var(--panel); border-radius: .25rem; white-space: pre-wrap; }
.verdict { padding: .75rem 1rem; border-left: .4rem solid; border-radius: .25rem; font-weight: 600; }
.good { background: var(--good-back); color: var(--good); }
.bad { background: var(--bad-back); color: var(--bad); }
.odd { background: var(--odd-back); color: var(--odd); }
.faint { color: var(--faint); }
.facts { display: grid; grid-template-columns: fit-content(45%) 1fr; gap: .15rem 1.25rem; margin: 1rem 0; }
.facts dt { color: var(--faint); overflow-wrap: anywhere; }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.facts code { display: block; }
.wide { overflow-x: auto; margin: 1rem 0;
  background: linear-gradient(to left, var(--page) 1rem, transparent) right / 2.5rem 100% no-repeat local,
    linear-gradient(to left, var(--line), transparent) right / .9rem 100% no-repeat scroll; }
@media (min-width: 80rem) {
  .wide { position: relative; left: 50%; width: max-content; min-width: 100%; max-width: calc(100vw - 3rem);
    transform: translateX(-50%); }
}
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { position: sticky; left: 0; width: max-content; max-width: min(60rem, calc(100vw - 2.5rem));
  padding: 0 0 .5rem; text-align: left; color: var(--faint); }
caption strong { display: block; color: var(--text); }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
thead th { background: var(--panel); }
tbody th { font-weight: 500; }
.number { text-align: right; }
.words { min-width: 18rem; white-space: normal; }
.notes { margin: .5rem 0 1rem; padding-left: 1.2rem; }
.notes li { background: none; }
summary { cursor: pointer; color: var(--faint); }
figure { margin: 0 0 2rem; }
figcaption p { margin: 0 0 .5rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
.charts svg { display: block; width: 100%; max-width: 38rem; height: auto; font: 12.5px system-ui, sans-serif; }
.key { display: flex; flex-wrap: wrap; gap: .15rem 1.5rem; margin: .5rem 0 0; padding: 0; list-style: none;
  font-size: .875rem; }
.key svg { width: 28px; height: 12px; }
@media (max-width: 40rem) {
  body { padding: 1rem .9rem 3rem; }
  .facts { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .facts dd { margin-bottom: .6rem; }
}
)";

// ` class="bad number"`, or nothing.
std::string classes(Tone tone, std::string_view more = "") {
  constexpr std::string_view kNames[] = {"", "good", "bad", "odd", "faint"};
  std::string names(kNames[static_cast<std::size_t>(tone)]);
  names += names.empty() || more.empty() ? "" : " ";
  names += more;
  return names.empty() ? "" : fmt::format(" class=\"{}\"", names);
}

std::string facts_list(const std::vector<Fact>& facts) {
  std::string text;
  for (const Fact& fact : facts) {
    const std::string command = fact.command.empty() ? "" : fmt::format(" <code>{}</code>", markup(fact.command));
    text += fmt::format("<dt>{}</dt><dd>{}{}</dd>\n", line_markup(fact.name), line_markup(fact.value), command);
  }
  return text.empty() ? "" : "<dl class=\"facts\">\n" + text + "</dl>\n";
}

std::string notes_list(const std::vector<Note>& notes) {
  std::string text;
  for (const Note& note : notes) text += fmt::format("<li{}>{}</li>\n", classes(note.tone), line_markup(note.text));
  return text.empty() ? "" : "<ul class=\"notes\">\n" + text + "</ul>\n";
}

// Where a row is longer than a line can be read, its last words may wrap.
bool has_long_texts(const Table& table, std::size_t column) {
  constexpr std::size_t kLong = 40;
  return std::ranges::any_of(
      table.rows, [column](const TextRow& row) { return column < row.size() && columns_of(row[column].text) > kLong; });
}

// The column that tells what a row is about: the first of words, or else the first.
std::size_t naming_column(const Table& table) {
  const auto found = std::ranges::find(table.columns, false, &TableColumn::number);
  return found == table.columns.end() ? 0 : static_cast<std::size_t>(found - table.columns.begin());
}

std::string table_element(const Table& table, std::string_view about) {
  const std::size_t naming = naming_column(table);
  std::vector<std::string_view> forms;
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    forms.push_back(table.columns[i].number ? "number" : has_long_texts(table, i) ? "words" : "");
  const std::string title = table.title.empty() ? "" : fmt::format("<strong>{}</strong>", line_markup(table.title));
  // With a name and a place among what the keyboard reaches, so that it can be scrolled.
  std::string text = fmt::format(
      "<div class=\"wide\" role=\"region\" aria-label=\"{}\" "
      "tabindex=\"0\"><table>\n<caption>{}{}</caption>\n<thead><tr>",
      line_markup(table.title.empty() ? about : table.title), title, line_markup(table.about));
  for (std::size_t i = 0; i < forms.size(); ++i)
    text += fmt::format("<th scope=\"col\"{}>{}</th>", classes(Tone::plain, forms[i]),
                        line_markup(table.columns[i].heading()));
  text += "</tr></thead>\n<tbody>\n";
  for (const TextRow& row : table.rows) {
    text += "<tr>";
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const TextCell cell = i < row.size() ? row[i] : TextCell{};
      const std::string form = classes(cell.tone, forms[i]);
      text += i == naming ? fmt::format("<th scope=\"row\"{}>{}</th>", form, line_markup(cell.text))
                          : fmt::format("<td{}>{}</td>", form, line_markup(cell.text));
    }
    text += "</tr>\n";
  }
  text += "</tbody>\n</table></div>\n";
  std::vector<Fact> meanings;
  for (const TableColumn& column : table.columns) {
    if (!column.meaning.empty()) meanings.push_back({column.name, column.meaning});
  }
  if (!meanings.empty())
    text += "<details><summary>What the columns mean</summary>\n" + facts_list(meanings) + "</details>\n";
  return text + notes_list(table.notes);
}

std::string figure_element(const Figure& figure) {
  std::string text =
      fmt::format("<figure>\n<figcaption><h3>{}</h3>\n<p class=\"faint\">{}</p></figcaption>\n<div class=\"charts\">\n",
                  line_markup(figure.title), line_markup(figure.subtitle));
  for (const Chart& chart : figure.charts) text += chart_element(figure, chart);
  text += "</div>\n";
  if (!figure.has_bars()) {
    text += "<ul class=\"key\">\n";
    const std::vector<Series>& series = figure.charts.front().series;
    for (std::size_t i = 0; i < series.size(); ++i)
      text += fmt::format("<li>{} {}</li>\n", key_element(i), line_markup(series[i].name));
    text += "</ul>\n";
  }
  return text + "</figure>\n";
}

std::string part_element(const Part& part) {
  std::string text;
  for (const Note& note : part.lead) text += fmt::format("<p{}>{}</p>\n", classes(note.tone), line_markup(note.text));
  text += facts_list(part.facts);
  for (const Table& table : part.tables) {
    if (!table.rows.empty())
      text += table_element(table, part.title);
    else
      text += notes_list(table.notes);
  }
  for (const Figure& figure : part.figures) text += figure_element(figure);
  if (!part.command.empty()) text += fmt::format("<pre><code>{}</code></pre>\n", markup(part.command));
  return text + notes_list(part.notes);
}

// "All rows" is at #all-rows.
std::string id_of(const Part& part) {
  std::string id;
  for (const char letter : part.title) id += letter == ' ' ? '-' : static_cast<char>(letter | 0x20);
  return id;
}

// Nothing in it can end the element or begin another.
std::string data_element(const Report& report) {
  if (report.data.empty()) return {};
  std::string text = fmt::format("<script type=\"application/json\" id=\"{}\">\n", report.data_name);
  for (const char letter : report.data) {
    const bool is_plain = letter != '<' && letter != '>' && letter != '&';
    text += is_plain ? std::string(1, letter) : fmt::format("\\u{:04x}", static_cast<int>(letter));
  }
  return text + "</script>\n";
}

}  // namespace

std::string html_page(const Report& report) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{}: {}</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n",
      line_markup(report.tool), line_markup(report.verdict.text), kStyle,
      chart_style("var(--text)", "var(--faint)", "var(--line)"), line_markup(report.head.title));
  text += fmt::format("<p{}>{}</p>\n", classes(report.verdict.tone, "verdict"), line_markup(report.verdict.text));
  text += part_element(report.head);
  if (report.parts.size() > 1) {
    text += "<nav aria-label=\"Contents\"><ol>\n";
    for (const Part& part : report.parts)
      text += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", id_of(part), line_markup(part.title));
    text += "</ol></nav>\n";
  }
  for (const Part& part : report.parts)
    text += fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n{2}</section>\n",
        id_of(part), line_markup(part.title), part_element(part));
  return text + data_element(report) + "</main>\n</body>\n</html>\n";
}

}  // namespace col::tools
