// The charts of a run, and its page.
#include <algorithm>
#include <cmath>
#include <regex>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "colbench/report/json.hpp"
#include "colbench/report/report.hpp"
#include "common/command_line.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/colcheck/markup.hpp"

using namespace col::colbench;
using Catch::Approx;
using col::colcheck::Element;
using col::colcheck::parse_xml;
using col::tools::Figure;

namespace {

Results two_curves() {
  Results results = sample_run();
  for (const char* algorithm : {"ring", "mst"}) {
    for (const std::size_t bytes : {1u << 10, 32u << 20, 1u << 20}) {
      results.cells.push_back(
          sample_cell(Operation::allreduce, algorithm, bytes, 1e-6 + static_cast<double>(bytes) / 4e9));
    }
  }
  return results;
}

std::string html_report(const Results& results, const col::tools::Part& own = {}) {
  return html_page(report_of(results, own));
}

std::vector<Figure> drawn(const Results& results) {
  return figures_of(results).figures;
}

bool says(const Results& results, const std::string& text) {
  const auto notes = figures_of(results).notes;
  return std::ranges::any_of(notes, [&](const col::tools::Note& note) { return note.text.starts_with(text); });
}

// One series over sizes, with these values.
Element chart_of(const std::vector<double>& values) {
  col::tools::Chart chart{"y", [](double value) { return fmt::format("{}", value); },
                          [](double value) { return fmt::format("{}", value); }};
  chart.series.push_back({"one"});
  for (std::size_t i = 0; i < values.size(); ++i)
    chart.series[0].points.push_back({std::exp2(10.0 + static_cast<double>(i)), values[i]});
  const Figure figure{"title", "", "x", chart.text, {chart}};
  return parse_xml(chart_element(figure, figure.charts[0]));
}

std::string class_of(const Element& element) {
  const auto found = element.attributes.find("class");
  return found == element.attributes.end() ? "" : found->second;
}

std::size_t count_of(const Element& root, const std::string& name, const std::string& wanted) {
  const auto all = root.all(name);
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [&](const Element* element) { return class_of(*element) == wanted; }));
}

}  // namespace

TEST_CASE("figure: a series joins the cells that differ only in size, by ascending size", "[colbench]") {
  const std::vector<Figure> figures = drawn(two_curves());
  REQUIRE(figures.size() == 1);
  const Figure& figure = figures[0];
  CHECK(figure.title == "allreduce");
  CHECK(figure.subtitle == "shm, float32, sum, 2 ranks, out of place, isolated");
  REQUIRE(figure.charts.size() == 2);
  const auto &times = figure.charts[0].series, &rates = figure.charts[1].series;
  REQUIRE((times.size() == 2 && rates.size() == 2));
  CHECK(times[0].name == "ring");
  CHECK(times[1].name == "mst");
  const auto& points = times[0].points;
  REQUIRE(points.size() == 3);
  CHECK((points[0].x < points[1].x && points[1].x < points[2].x));
  CHECK((points[0].low <= points[0].y && points[0].y <= points[0].high && points[0].low < points[0].high));
  // 2(p-1)/p is 1 for two ranks.
  CHECK(rates[0].points[2].y == Approx(33554432 / points[2].y / 1e9));
  CHECK(rates[0].points[2].low == Approx(33554432 / points[2].high / 1e9));
  CHECK(times[0].bound.size() == 3);
  CHECK(rates[0].bound[2].y > rates[0].points[2].y);
}

TEST_CASE("figure: each of the five things that make a series tells them apart", "[colbench]") {
  Results results = sample_run();
  for (int i = 0; i < 5; ++i) {
    Cell cell = sample_cell(Operation::allreduce, i == 1 ? "mst" : "ring", 1024, 1e-6);
    if (i == 2) cell.backend = cell.spec.backend = "gloo";
    cell.spec.in_place = i == 3;
    if (i == 4) cell.spec.cadence = Cadence::stream;
    results.cells.push_back(cell);
  }
  results.cells.push_back(sample_cell(Operation::broadcast, "auto", 1024, 1e-6));
  results.cells.back().algorithm = "mst";
  results.cells.push_back(sample_cell(Operation::broadcast, "auto", 2048, 1e-6));
  results.cells.back().algorithm = "linear";
  const std::vector<Figure> figures = drawn(results);
  REQUIRE(figures.size() == 2);
  CHECK(figures[0].title == "allreduce of 1K");
  const auto& series = figures[0].charts[0].series;
  REQUIRE(series.size() == 5);
  CHECK(series[0].name == "ring, shm, out of place, isolated");
  CHECK(series[2].name == "ring, gloo, out of place, isolated");
  CHECK(series[3].name == "ring, shm, in place, isolated");
  CHECK(series[4].name == "ring, shm, out of place, stream");
  REQUIRE(figures[1].charts[0].series.size() == 1);
  CHECK(figures[1].charts[0].series[0].name == "auto (mst, linear)");
}

TEST_CASE("figure: what is invalid, unmeasured or without a size is not drawn, and that is said", "[colbench]") {
  const Results results = sample_results();
  const std::vector<Figure> figures = drawn(results);
  REQUIRE(figures.size() == 3);
  CHECK(figures[1].title.starts_with("allgather"));
  CHECK(figures[2].title.starts_with("pingpong"));
  CHECK(says(results, "Points: medians. Bands: their 95 % intervals. Dashed: what this machine allows"));
  CHECK(says(results, "Bars: medians, the fastest first"));
  CHECK(says(results, "A barrier has no size; it takes 1.10 us (dissemination)."));
  CHECK(says(results, "Not drawn: 4 rows that are invalid or not measured."));
  CHECK(figures_of(results).notes.back().text.starts_with("colbench "));
  // Of five samples there is no interval.
  const auto& few = figures[0].charts[0].series[1].points[1];
  CHECK((std::isnan(few.low) && std::isnan(few.high) && few.y > 0));
}

TEST_CASE("figure: every number of ranks has its own; too many series have none", "[colbench]") {
  Results results = two_curves();
  const std::size_t count = results.cells.size();
  for (std::size_t i = 0; i < count; ++i) {
    results.cells.push_back(results.cells[i]);
    results.cells.back().spec.ranks += 2;
  }
  const std::vector<Figure> figures = drawn(results);
  REQUIRE(figures.size() == 2);
  CHECK(figures[0].charts[0].series.size() == figures[1].charts[0].series.size());
  CHECK(figures[0].title != figures[1].title);
  CHECK(figures[0].title.ends_with(" ranks"));
  for (int i = 0; i < 41; ++i) results.cells.push_back(sample_cell(Operation::scan, fmt::format("a{}", i), 1024, 1e-6));
  CHECK(drawn(results).size() == 2);
  CHECK(says(results, "Not drawn: scan of 1K, whose 41 series"));
}

TEST_CASE("chart: axes hold every value, and have names", "[colbench]") {
  for (const auto& values : {std::vector<double>{3e-7, 0.2}, {5e-6, 5e-6}, {1e-9, 1e3}, {1e-3, 1.01e-3}}) {
    CAPTURE(values);
    const Element chart = chart_of(values);
    const auto texts = chart.all("text");
    const auto names = [&](const char* anchor) {
      return std::ranges::count_if(texts, [&](const Element* text) {
        const auto found = text->attributes.find("text-anchor");
        return found != text->attributes.end() && found->second == anchor;
      });
    };
    CHECK((names("end") >= 2 && names("end") <= 12));
    CHECK(names("middle") == 1 + 2);  // x, 1K and 2K
    std::size_t points = 0;
    for (const Element* path : chart.all("path")) {
      double x = 0, y = 0;
      if (path->children.empty()) continue;  // a line of the grid
      REQUIRE(std::sscanf(path->attributes.at("d").c_str(), "M%lf %lfm", &x, &y) == 2);
      CHECK((x > 58 && x < 470 && y > 26 && y < 270));
      ++points;
    }
    CHECK(points == values.size());
  }
}

TEST_CASE("chart: the same bound of several series is drawn once", "[colbench]") {
  Figure figure = drawn(two_curves())[0];
  const auto bounds = [&](const char* wanted) {
    return count_of(parse_xml(chart_element(figure, figure.charts[0])), "polyline", wanted);
  };
  CHECK((bounds("bound shared") == 1 && bounds("bound") == 0));
  figure.charts[0].series[1].bound[0].y *= 2;
  CHECK((bounds("bound shared") == 0 && bounds("bound") == 2));
}

TEST_CASE("chart: of one size, bars: the fastest first, and as long as the times; who cannot see it is told",
          "[colbench]") {
  Results results = sample_run();
  results.cells = {sample_cell(Operation::allreduce, "ring", 1024, 5e-6),
                   sample_cell(Operation::allreduce, "mst", 1024, 3e-6)};
  results.cells[1].bound.seconds = 1.5e-6;
  const Figure figure = drawn(results)[0];
  const Element chart = parse_xml(chart_element(figure, figure.charts[0]));
  CHECK(chart.attributes.at("role") == "img");
  CHECK(chart.children[0].text == "allreduce of 1K: Time of one operation, median");
  CHECK(chart.children[1].text == "mst: 3.00 us, at best 1.50 us. ring: 5.00 us, at best 4.00 us.");
  const auto rects = chart.all("rect");
  REQUIRE(rects.size() == 2);
  const double mst = std::stod(rects[0]->attributes.at("width")), ring = std::stod(rects[1]->attributes.at("width"));
  CHECK(mst / ring == Approx(0.6).epsilon(0.01));
  CHECK(count_of(chart, "path", "limit") == 2);
  CHECK(count_of(chart, "path", "interval") == 2);
  const Element rates = parse_xml(chart_element(figure, figure.charts[1]));
  CHECK(rates.children[1].text.starts_with("mst: "));
}

TEST_CASE("plot: an SVG with the curves, their key and notes, on white, that refers to nothing", "[colbench]") {
  const std::string svg = plot_svg(two_curves());
  CHECK(svg.starts_with("<?xml"));
  const Element root = parse_xml(svg);
  CHECK(root.name == "svg");
  CHECK(root.children[0].text == "colbench: time and bus bandwidth over size");
  CHECK(root.all("rect")[0]->attributes.at("fill") == "#ffffff");
  CHECK(count_of(root, "svg", "chart") == 2);
  std::string texts;
  for (const Element* text : root.all("text")) texts += text->text + "\n";
  for (const char* text : {"allreduce", "ring", "mst", "Bus bandwidth, GB/s", "16M", "size in bytes",
                           "Dashed: ", "shm, float32, sum, 2 ranks, out of place, isolated", "colbench "}) {
    CAPTURE(text);
    CHECK(texts.find(text) != std::string::npos);
  }
  for (const char* word : {"<script", "url(", "@import", "href", "var("}) CHECK(svg.find(word) == std::string::npos);
  CHECK(complaint_of([] { plot_svg(sample_run()); }) ==
        "there is nothing to draw: no operation with a size was measured and found good");
}

TEST_CASE("plot: names in an SVG are text, whatever they hold", "[colbench]") {
  Results results = two_curves();
  for (Cell& cell : results.cells) cell.spec.algorithm = cell.algorithm = kNasty;
  results.run.host = kNasty;
  const std::string svg = plot_svg(results);
  CHECK_NOTHROW(parse_xml(svg));
  CHECK(svg.find("<b a") == std::string::npos);
  CHECK(svg.find('\x1b') == std::string::npos);
}

TEST_CASE("plot: what is no SVG is refused by name, with what to do", "[colbench]") {
  for (const char* path : {"x.png", "x.pdf", "svg"}) {
    const std::string said = complaint_of([&] { check_plot("--plot", path); });
    CHECK(said.starts_with(fmt::format("--plot {}: a drawing is SVG; end its name with .svg, ", path)));
    CHECK(said.find("rsvg-convert x.svg -o x.png") != std::string::npos);
  }
  CHECK(complaint_of([] { check_plot("--plot", "a.svg"); }) == "nothing");
}

namespace {

// The page as XML: elements without an end tag get one.
Element parse_page(const std::string& page) {
  return parse_xml(std::regex_replace(page, std::regex("(<meta [^>]*)>"), "$1/>"));
}

void check_attributes(const Element& element) {
  for (const auto& [name, value] : element.attributes) {
    CAPTURE(element.name, name, value);
    CHECK((name != "src" && name != "style" && !name.starts_with("on")));
    if (name == "href") CHECK(value.starts_with("#"));
  }
  for (const Element& child : element.children) check_attributes(child);
}

const Element* with_class(const Element& page, const std::string& name, const std::string& wanted) {
  for (const Element* element : page.all(name)) {
    const auto found = element->attributes.find("class");
    if (found != element->attributes.end() && found->second == wanted) return element;
  }
  return nullptr;
}

const Element& section(const Element& page, const std::string& id) {
  for (const Element* element : page.all("section")) {
    const auto found = element->attributes.find("id");
    if (found != element->attributes.end() && found->second == id) return *element;
  }
  FAIL("the page has no section " << id);
  return page;
}

Results good() {
  Results results = sample_run();
  results.cells = {sample_cell(Operation::allreduce, "ring", 1024, 5e-6),
                   sample_cell(Operation::allreduce, "mst", 1024, 3e-6)};
  results.cells[1].bound.seconds = 1.5e-6;
  return results;
}

}  // namespace

TEST_CASE("html: refers to nothing outside itself and runs nothing", "[colbench]") {
  const std::string page = html_report(sample_results());
  CHECK(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK(page.find("prefers-color-scheme: dark") != std::string::npos);
  CHECK(occurrences(page, "<script") == 1);
  for (const char* word : {"url(", "@import", "<link", "<img", "<base", "<iframe", "http://", "https://"}) {
    CAPTURE(word);
    CHECK(page.find(word) == std::string::npos);
  }
  check_attributes(parse_page(page));
}

TEST_CASE("html: what was found stands first, in words", "[colbench]") {
  const Element page = parse_page(html_report(good()));
  const Element* verdict = with_class(page, "p", "good verdict");
  REQUIRE(verdict != nullptr);
  CHECK(verdict->text == "✔ 2 rows measured; every row is verified");
  CHECK(page.all("h1")[0]->text == "allreduce");
  const Element* findings = with_class(page, "ul", "notes");
  REQUIRE(findings != nullptr);
  REQUIRE(findings->children.size() == 4);  // and a warning
  CHECK(findings->children[0].text.starts_with(
      "Furthest from what this machine allows: allreduce 1K, mst over shm, at 50 % of the bound (3.00 us, bound 1.50"));
  CHECK(findings->children[1].text == "Nearest to it: allreduce 1K, ring over shm, at 80 % (5.00 us).");

  const Element bad = parse_page(html_report(sample_results()));
  REQUIRE(with_class(bad, "p", "bad verdict") != nullptr);
  CHECK(with_class(bad, "p", "bad verdict")->text == "✘ 10 rows measured; 8 of 9 rows verified; 2 rows invalid");
  REQUIRE(with_class(parse_page(html_report(sample_run())), "p", "odd verdict") != nullptr);
  Results ended = good();
  ended.ended_early = "rank 1 died";
  REQUIRE(with_class(parse_page(html_report(ended)), "p", "bad verdict") != nullptr);
}

TEST_CASE("html: every row with all its statistics, marked not by colour alone", "[colbench]") {
  const Results results = sample_results();
  const Element page = parse_page(html_report(results));
  const Element* table = section(page, "all-rows").all("table")[0];
  const auto head = table->all("thead")[0]->all("th");
  const auto rows = table->all("tbody")[0]->all("tr");
  REQUIRE(rows.size() == results.cells.size());
  for (const Element* row : rows) CHECK(row->children.size() == head.size());
  for (const char* name : {"t50", "±CI", "tmin", "p95", "p99", "max", "skew", "mad", "outliers", "spread", "stop"}) {
    CAPTURE(name);
    CHECK(std::count_if(head.begin(), head.end(), [&](const Element* cell) { return cell->text == name; }) == 1);
  }
  for (const Element* cell : head) CHECK(cell->attributes.at("scope") == "col");
  for (const Element& cell : rows[8]->children) CHECK(class_of(cell).starts_with("bad"));
  CHECK(rows[8]->children[0].text == "✘ broadcast");
  CHECK(rows[9]->children.back().text ==
        "✘ invalid: 3 of 4,096 elements are wrong; first: rank 1, element 7: 3, not 12");
  CHECK(rows[10]->children.back().text == "– not measured: rank 1 died");
  CHECK(class_of(rows[0]->children[0]).empty());
  CHECK((rows[0]->children[0].name == "th" && rows[0]->children[0].attributes.at("scope") == "row"));
}

TEST_CASE("html: the machine, the command to repeat it, and all samples", "[colbench]") {
  const Results results = sample_results();
  const Element page = parse_page(html_report(results));
  CHECK(page.all("pre")[0]->children[0].text == "colbench allreduce,broadcast --sizes 1K,32M --algo ring,mst");
  const Element* data = page.all("script")[0];
  CHECK(data->attributes.at("type") == "application/json");
  CHECK(nlohmann::json::parse(data->text) == nlohmann::json::parse(json_results(results)));
  const auto tables = section(page, "machine").all("table");
  REQUIRE(tables.size() == 2);
  CHECK(tables[0]->all("tbody")[0]->children.size() == 3);
}

TEST_CASE("html: the summary, then what the page contains, then the sections", "[colbench]") {
  const std::string text = html_report(good());
  const Element page = parse_page(text);
  const auto links = page.all("nav")[0]->all("a");
  std::vector<std::string> titles;
  for (const Element* link : links) {
    const Element& target = section(page, link->attributes.at("href").substr(1));
    REQUIRE(target.children[0].name == "h2");
    CHECK(target.children[0].text == link->text);
    titles.push_back(link->text);
  }
  CHECK(titles == std::vector<std::string>{"Figures", "All rows", "Machine", "Run", "Repeat it"});
  CHECK(text.find("verdict\">") < text.find("<nav"));
}

TEST_CASE("html: curves over sizes are drawn, each with its key, and told to who cannot see them", "[colbench]") {
  const Element page = parse_page(html_report(two_curves()));
  const Element& figures = section(page, "figures");
  CHECK(figures.all("figure").size() == 1);
  std::vector<const Element*> charts;
  for (const Element* svg : figures.all("svg")) {
    if (svg->attributes.contains("role")) charts.push_back(svg);
  }
  REQUIRE(charts.size() == 2);
  CHECK(charts[0]->children[0].text == "allreduce: Time of one operation, median, over size in bytes");
  CHECK(charts[1]->children[0].text == "allreduce: Bus bandwidth, GB/s, over size in bytes");
  CHECK(charts[0]->children[1].text.starts_with("ring: "));
  CHECK(charts[0]->all("polyline").size() == 3);  // two curves, and the bound that they share
  const auto keys = figures.all("ul")[0]->all("li");
  REQUIRE(keys.size() == 2);
  CHECK(keys[0]->text.find("ring") != std::string::npos);
  // Every point says what it is.
  CHECK(charts[0]->all("title").size() == 1 + two_curves().cells.size());
}

TEST_CASE("html: a command's own part stands above the figures", "[colbench]") {
  col::tools::Part own{.title = "Ranking", .lead = {{"emulated <b>"}}};
  own.tables.push_back(
      {.title = "8 ranks", .columns = {{"#", true}, {"name"}}, .rows = {{{"1"}, {"ring"}}}, .notes = {{"a note"}}});
  const std::string text = html_report(good(), own);
  const Element page = parse_page(text);
  CHECK(text.find("id=\"ranking\"") < text.find("id=\"figures\""));
  const Element& result = section(page, "ranking");
  CHECK(result.all("p")[0]->text == "emulated <b>");
  CHECK(result.all("caption")[0]->children[0].text == "8 ranks");
  CHECK(result.all("td")[0]->attributes.at("class") == "number");
  const Element& name = result.all("tbody")[0]->children[0].children[1];
  CHECK((name.name == "th" && name.attributes.at("scope") == "row" && name.text == "ring"));
  CHECK(with_class(result, "ul", "notes")->children[0].text == "a note");
  CHECK(with_class(result, "div", "wide")->attributes.at("tabindex") == "0");
  CHECK(with_class(result, "div", "wide")->attributes.at("aria-label") == "8 ranks");
}

TEST_CASE("html: well formed whatever the results hold", "[colbench]") {
  Results results = sample_results();
  RunFacts& run = results.run;
  run.host = run.cpu = run.kernel = run.governor = run.version = run.started = run.launcher = kNasty;
  run.command = {"colbench", kNasty};
  run.environment = {{kNasty, kNasty}};
  results.warnings = {kNasty};
  results.ended_early = kNasty;
  results.machine.fits[0].backend = kNasty;
  for (Cell& cell : results.cells) {
    cell.algorithm = cell.backend = cell.spec.algorithm = cell.spec.backend = cell.stop = cell.bound.how = kNasty;
    cell.check.first = kNasty;
    if (!cell.invalid.empty()) cell.invalid = kNasty;
    if (!cell.note.empty()) cell.note = kNasty;
  }
  const std::string page = html_report(results);
  const Element root = parse_page(page);
  CHECK(section(root, "all-rows").all("table").size() == 1);
  CHECK(page.find("<b a") == std::string::npos);
  CHECK(occurrences(page, "</script>") == 1);
  CHECK(page.find('\x1b') == std::string::npos);
}
