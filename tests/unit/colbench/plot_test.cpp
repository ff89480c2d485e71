// The curves of a run, and its page.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include <nlohmann/json.hpp>

#include "colbench/report/figure.hpp"
#include "colbench/report/json.hpp"
#include "colbench/report/plot_script.hpp"
#include "colbench/report/reports.hpp"
#include "common/command_line.hpp"
#include "common/write_file.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"
#include "support/jumping_time.hpp"
#include "support/temp_dir.hpp"
#include "unit/colcheck/markup.hpp"

using namespace col::colbench;
using Catch::Approx;
using col::colcheck::Element;
using col::colcheck::parse_xml;

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

// PATH has one directory while it lives.
class OnlyPath {
 public:
  explicit OnlyPath(const std::string& directory) {
    if (const char* before = std::getenv("PATH")) before_ = before;
    ::setenv("PATH", directory.c_str(), 1);
  }
  ~OnlyPath() { ::setenv("PATH", before_.c_str(), 1); }
  OnlyPath(const OnlyPath&) = delete;
  OnlyPath& operator=(const OnlyPath&) = delete;

 private:
  std::string before_;
};

void write_program(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  REQUIRE(::chmod(path.c_str(), 0700) == 0);
}

template <class Function>
std::string complaint(Function function) {
  try {
    function();
    return "nothing";
  } catch (const col::tools::UsageError& error) {
    return std::string("usage: ") + error.what();
  } catch (const col::tools::WriteError& error) {
    return std::string("write: ") + error.what();
  }
}

}  // namespace

TEST_CASE("figure: a curve joins the cells that differ only in size, by ascending size", "[colbench]") {
  const Figure figure = figure_of(two_curves());
  REQUIRE(figure.panels.size() == 1);
  const PlotPanel& panel = figure.panels[0];
  CHECK(panel.title == "allreduce");
  CHECK(panel.subtitle == "shm, float32, sum, 2 ranks, out of place, isolated");
  REQUIRE(panel.curves.size() == 2);
  CHECK(panel.curves[0].name == "ring");
  CHECK(panel.curves[1].name == "mst");
  const auto& points = panel.curves[0].time;
  REQUIRE(points.size() == 3);
  CHECK((points[0].bytes < points[1].bytes && points[1].bytes < points[2].bytes));
  CHECK((points[0].low <= points[0].value && points[0].value <= points[0].high && points[0].low < points[0].high));
  // 2(p-1)/p is 1 for two ranks.
  const auto& rates = panel.curves[0].bandwidth;
  CHECK(rates[2].value == Approx(33554432 / points[2].value / 1e9));
  CHECK(rates[2].low == Approx(33554432 / points[2].high / 1e9));
  CHECK(panel.curves[0].time_bound.size() == 3);
  CHECK(panel.curves[0].bandwidth_bound[2].value > rates[2].value);
}

TEST_CASE("figure: each of the five things that make a curve tells curves apart", "[colbench]") {
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
  const Figure figure = figure_of(results);
  REQUIRE(figure.panels.size() == 2);
  REQUIRE(figure.panels[0].curves.size() == 5);
  CHECK(figure.panels[0].curves[0].name == "ring, shm, out of place, isolated");
  CHECK(figure.panels[0].curves[2].name == "ring, gloo, out of place, isolated");
  CHECK(figure.panels[0].curves[3].name == "ring, shm, in place, isolated");
  CHECK(figure.panels[0].curves[4].name == "ring, shm, out of place, stream");
  REQUIRE(figure.panels[1].curves.size() == 1);
  CHECK(figure.panels[1].curves[0].name == "auto (mst, linear)");
}

TEST_CASE("figure: what is invalid, unmeasured or without a size is not drawn, and that is said", "[colbench]") {
  const Figure figure = figure_of(sample_results());
  REQUIRE(figure.panels.size() == 3);
  CHECK(figure.panels[1].title == "allgather");
  CHECK(figure.panels[2].title == "pingpong");
  REQUIRE(figure.notes.size() == 3);
  CHECK(figure.notes[0].starts_with("A barrier has no size; it takes 1.10 us (dissemination)."));
  CHECK(figure.notes[1] == "Not drawn: 4 rows that are invalid or not measured.");
  // Of five samples there is no interval.
  const CurvePoint& few = figure.panels[0].curves[1].time[1];
  CHECK((std::isnan(few.low) && std::isnan(few.high) && few.value > 0));
}

TEST_CASE("plot layout: axes hold every value, and have labels", "[colbench]") {
  for (const auto& values : {std::vector<double>{3e-7, 0.2}, {5e-6}, {1e-9, 1e3}, {1e-3, 1.01e-3}}) {
    const Axis axis = time_axis(values);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK((axis.low < *low && axis.high > *high));
    const auto labels =
        std::count_if(axis.ticks.begin(), axis.ticks.end(), [](const Tick& t) { return !t.label.empty(); });
    CHECK((labels >= 2 && labels <= 12));
    for (const Tick& tick : axis.ticks) CHECK((tick.value >= axis.low && tick.value <= axis.high));
  }
  const auto label_at = [](const Axis& axis, double value) {
    for (const Tick& tick : axis.ticks) {
      if (tick.value == Approx(value)) return tick.label;
    }
    return std::string("none");
  };
  CHECK(label_at(time_axis({1e-7, 1e-2}), 1e-6) == "1 us");
  CHECK(label_at(time_axis({1e-7, 1e-2}), 2e-6).empty());
  CHECK(label_at(time_axis({1e-6, 1e-5}), 2e-6) == "2 us");
  CHECK(label_at(size_axis({1024, 33554432}), 1024) == "1K");
  CHECK(label_at(bandwidth_axis({0.001, 10}), 0.01) == "0.01");
}

TEST_CASE("plot layout: the same bound of several curves is drawn once", "[colbench]") {
  PlotPanel panel = figure_of(two_curves()).panels[0];
  auto bounds = bounds_of(panel);
  REQUIRE(bounds.size() == 1);
  CHECK(bounds[0].shared);
  panel.curves[1].time_bound[0].value *= 2;
  bounds = bounds_of(panel);
  REQUIRE(bounds.size() == 2);
  CHECK_FALSE(bounds[0].shared);
  CHECK(bounds[1].curve == 1);
}

TEST_CASE("plot script: data in it, names quoted so that nothing of them is run", "[colbench]") {
  Results results = two_curves();
  for (Cell& cell : results.cells) cell.spec.algorithm = cell.algorithm = kNasty;
  results.run.host = "it's `id`";
  const std::string script = plot_script(figure_of(results), PlotFormat::svg);
  CHECK(script.find("it’s ’id’") != std::string::npos);
  CHECK(script.find('`') == std::string::npos);
  CHECK(script.find('\x1b') == std::string::npos);
  CHECK(occurrences(script, "<< EOD") == 4);  // two panels of a curve and of its bound
  CHECK(script.find("system") == std::string::npos);
}

TEST_CASE("plot: an SVG with the curves, on white, that refers to nothing", "[colbench][rest]") {
  need_gnuplot();
  const std::string svg = plot_svg(two_curves());
  CHECK(svg.starts_with("<?xml"));
  CHECK(svg.find("fill=\"#ffffff\"") != std::string::npos);
  for (const char* text : {"allreduce", "ring", "mst", "Bus bandwidth, GB/s", "16M", "size in bytes"}) {
    CAPTURE(text);
    CHECK(svg.find(text) != std::string::npos);
  }
  CHECK(occurrences(svg, "rgb( 26, 125, 191)") > 4);
  CHECK(svg.find("<script") == std::string::npos);
}

TEST_CASE("plot: the file's name says whether it is SVG or PNG", "[colbench][rest]") {
  const col::test::TempDir directory;
  CHECK(complaint([] { write_plot(two_curves(), "x.pdf"); }) ==
        "usage: --plot: 'x.pdf' is no name for a drawing; end it with .svg or .png");
  CHECK(complaint([] { check_plot("svg"); }).starts_with("usage: --plot: 'svg' is no name"));
  need_gnuplot();
  write_plot(two_curves(), directory / "a.svg");
  write_plot(two_curves(), directory / "a.png");
  CHECK(content_of(directory / "a.svg").find("<svg") != std::string::npos);
  CHECK(content_of(directory / "a.png").starts_with("\x89PNG"));
  CHECK(complaint([&] { check_plot(directory / "a.svg"); }) == "nothing");
  CHECK(complaint([&] { check_plot(directory / "none/a.svg"); }).starts_with("write: cannot write "));
  CHECK(complaint([] { plot_svg(sample_run()); }) ==
        "usage: there is nothing to draw: no operation with a size was measured and found good");
}

TEST_CASE("plot: names in an SVG are text, whatever they hold, and nothing is run", "[colbench][rest]") {
  need_gnuplot();
  const col::test::TempDir directory;
  const std::string mark = directory / "mark";
  Results results = two_curves();
  const std::string name = "`touch " + mark + "`'; system('touch " + mark + "') #<b>&" + kNasty;
  for (Cell& cell : results.cells) cell.spec.algorithm = cell.algorithm = name;
  results.run.host = name;
  const std::string svg = plot_svg(results);
  CHECK_FALSE(std::filesystem::exists(mark));
  CHECK(svg.find("<b>") == std::string::npos);
  CHECK(svg.find("&lt;b") != std::string::npos);
}

TEST_CASE("plot: without gnuplot one line says what to install; when it fails, what it says", "[colbench]") {
  const col::test::TempDir directory;
  const OnlyPath path(directory.path());
  CHECK_FALSE(has_gnuplot());
  CHECK(complaint([] { plot_svg(two_curves()); }) == "usage: " + no_gnuplot_text());
  CHECK(no_gnuplot_text().find("gnuplot-nox") != std::string::npos);
  CHECK(complaint([] { check_plot("/tmp/a.svg"); }) == "usage: --plot: " + no_gnuplot_text());
  write_program(directory / "gnuplot", "#!/bin/sh\necho 'line 1:\n unknown command' >&2\nexit 1\n");
  CHECK(complaint([] { plot_svg(two_curves()); }) == "write: gnuplot failed: line 1: unknown command");
  write_program(directory / "gnuplot", "#!/bin/sh\nkill -9 $$\n");
  CHECK(complaint([] { plot_svg(two_curves()); }) == "write: gnuplot failed: it does not say why");
  write_program(directory / "gnuplot", "#!/bin/sh\nread first\necho \"<svg>$1 $first</svg>\"\n");
  CHECK(plot_svg(two_curves()).starts_with("<svg>-d "));
}

TEST_CASE("plot: a gnuplot that does not end is killed at the deadline", "[colbench]") {
  const col::test::TempDir directory;
  const OnlyPath path(directory.path());
  write_program(directory / "gnuplot", "#!/bin/sh\nexec /bin/sleep 1000\n");
  const col::test::JumpingTime time;
  CHECK(complaint([] { run_gnuplot("x", std::chrono::milliseconds(300)); }) ==
        "write: gnuplot has not finished after 0.3 s");
  CHECK((::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));
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
  const Element* verdict = with_class(page, "p", "verdict good");
  REQUIRE(verdict != nullptr);
  CHECK(verdict->text == "✔ 2 rows measured; every row is verified");
  CHECK(page.all("h1")[0]->text == "allreduce");
  const Element* findings = with_class(page, "ul", "findings");
  REQUIRE(findings != nullptr);
  REQUIRE(findings->children.size() == 3);
  CHECK(findings->children[0].text.starts_with(
      "Furthest from what this machine allows: allreduce 1K, mst over shm, at 50 % of the bound (3.00 us, bound 1.50"));
  CHECK(findings->children[1].text == "Nearest to it: allreduce 1K, ring over shm, at 80 % (5.00 us).");

  const Element bad = parse_page(html_report(sample_results()));
  REQUIRE(with_class(bad, "p", "verdict bad") != nullptr);
  CHECK(with_class(bad, "p", "verdict bad")->text == "✘ 10 rows measured; 8 of 9 rows verified; 2 rows invalid");
  REQUIRE(with_class(parse_page(html_report(sample_run())), "p", "verdict odd") != nullptr);
  Results ended = good();
  ended.ended_early = "rank 1 died";
  REQUIRE(with_class(parse_page(html_report(ended)), "p", "verdict bad") != nullptr);
}

TEST_CASE("html: every row with all its statistics, marked not by colour alone", "[colbench]") {
  const Results results = sample_results();
  const Element page = parse_page(html_report(results));
  const Element* table = section(page, "rows").all("table")[0];
  const auto head = table->all("thead")[0]->all("th");
  const auto rows = table->all("tbody")[0]->all("tr");
  REQUIRE(rows.size() == results.cells.size());
  for (const Element* row : rows) CHECK(row->children.size() == head.size());
  for (const char* name : {"t50", "±CI", "tmin", "p95", "p99", "max", "skew", "mad", "outliers", "spread", "stop"}) {
    CAPTURE(name);
    CHECK(std::count_if(head.begin(), head.end(), [&](const Element* cell) { return cell->text == name; }) == 1);
  }
  for (const Element* cell : head) CHECK(cell->attributes.at("scope") == "col");
  CHECK(rows[8]->attributes.at("class") == "bad");
  CHECK(rows[8]->children[0].text == "✘ broadcast");
  CHECK(rows[9]->children.back().text ==
        "✘ invalid: 3 of 4,096 elements are wrong; first: rank 1, element 7: 3, not 12");
  CHECK(rows[10]->children.back().text == "– not measured: rank 1 died");
  CHECK(rows[0]->attributes.empty());
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
  CHECK(text.find("class=\"verdict") < text.find("<nav"));
}

TEST_CASE("html: curves over sizes are drawn without another program, each with its key", "[colbench]") {
  const OnlyPath path("/nonexistent");
  const Element page = parse_page(html_report(two_curves()));
  const Element& figures = section(page, "figures");
  CHECK(figures.all("figure").size() == 1);
  std::vector<const Element*> charts;
  for (const Element* svg : figures.all("svg")) {
    if (svg->attributes.contains("role")) charts.push_back(svg);
  }
  REQUIRE(charts.size() == 2);
  CHECK(charts[0]->attributes.at("aria-label") == "allreduce: Time of one operation, median over size");
  CHECK(charts[1]->attributes.at("aria-label") == "allreduce: Bus bandwidth, GB/s over size");
  CHECK(charts[0]->all("polyline").size() == 3);  // two curves, and the bound that they share
  const auto keys = figures.all("ul")[0]->all("li");
  REQUIRE(keys.size() == 2);
  CHECK(keys[0]->text.find("ring") != std::string::npos);
  // Every point says what it is.
  CHECK(charts[0]->all("title").size() == two_curves().cells.size());
}

TEST_CASE("html: of one size, bars: the fastest first, and as long as the times", "[colbench]") {
  const Element page = parse_page(html_report(good()));
  const auto rows = section(page, "figures").all("tr");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]->all("th")[0]->text == "mst");
  CHECK(rows[0]->all("rect")[0]->attributes.at("width") == "60.0");
  CHECK(rows[1]->all("rect")[0]->attributes.at("width") == "100.0");
  CHECK(rows[0]->all("path")[0]->attributes.at("d") == "M30.0 0V10");  // its bound
  CHECK(rows[1]->children.back().text == "5.00 us");
}

TEST_CASE("html: a command's own tables stand above the figures, with what they are not", "[colbench]") {
  PageExtras extras{.subject = "servers", .title = "Ranking", .caveats = {"emulated <b>"}, .tables = {}};
  extras.tables.push_back({.title = "8 ranks", .rows = {{{"#"}, {"name"}}, {{"1"}, {"ring"}}}, .notes = {"a note"}});
  extras.name = [](const CellSpec& spec) { return "the " + spec.algorithm; };
  const std::string text = html_report(good(), extras);
  const Element page = parse_page(text);
  CHECK(page.all("h1")[0]->text == "servers");
  CHECK(text.find("id=\"result\"") < text.find("id=\"figures\""));
  const Element& result = section(page, "result");
  CHECK(with_class(result, "p", "caveat")->text == "emulated <b>");
  CHECK(result.all("h3")[0]->text == "8 ranks");
  CHECK(result.all("td")[0]->attributes.at("class") == "number");
  CHECK(result.all("td")[1]->attributes.empty());
  CHECK(with_class(result, "ul", "notes")->children[0].text == "a note");
  CHECK(section(page, "figures").all("th")[0]->text == "the mst");
}

TEST_CASE("figure: every number of ranks has its own", "[colbench]") {
  Results results = two_curves();
  const std::size_t count = results.cells.size();
  for (std::size_t i = 0; i < count; ++i) {
    results.cells.push_back(results.cells[i]);
    results.cells.back().spec.ranks += 2;
  }
  const Figure figure = figure_of(results);
  REQUIRE(figure.panels.size() == 2);
  CHECK(figure.panels[0].curves.size() == figure.panels[1].curves.size());
  CHECK(figure.panels[0].title != figure.panels[1].title);
  CHECK(figure.panels[0].title.ends_with(" ranks"));
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
  CHECK(section(root, "rows").all("table").size() == 1);
  CHECK(page.find("<b a") == std::string::npos);
  CHECK(occurrences(page, "</script>") == 1);
  CHECK(page.find('\x1b') == std::string::npos);
}
