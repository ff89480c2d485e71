#include "colbench/report/html.hpp"

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <string>

#include <nlohmann/json.hpp>

#include "colbench/report/json.hpp"
#include "need_gnuplot.hpp"
#include "sample_results.hpp"
#include "support/catch.hpp"
#include "unit/colcheck/markup.hpp"

using namespace col::colbench;
using col::colcheck::Element;
using col::colcheck::parse_xml;

namespace {

// The drawing is gnuplot's; its syntax is not looked at here.
std::string without_drawing(std::string page) {
  const std::size_t start = page.find("<svg"), end = page.find("</svg>");
  if (start != std::string::npos && end != std::string::npos) page.erase(start, end + 6 - start);
  return page;
}

// The page as XML: elements without an end tag get one.
Element parse_page(const std::string& page) {
  return parse_xml(std::regex_replace(without_drawing(page), std::regex("(<meta [^>]*)>"), "$1/>"));
}

void check_attributes(const Element& element) {
  for (const auto& [name, value] : element.attributes) {
    CAPTURE(element.name, name, value);
    CHECK((name != "src" && name != "href" && name != "style" && !name.starts_with("on")));
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
  const std::string rest = without_drawing(page);
  for (const char* word : {"url(", "@import", "<link", "<img", "<base", "<iframe", "http://", "https://"}) {
    CAPTURE(word);
    CHECK(rest.find(word) == std::string::npos);
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
  const Element* table = page.all("table")[0];
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
  CHECK(page.all("table").size() == 3);
  CHECK(page.all("table")[1]->all("tbody")[0]->children.size() == 3);
}

TEST_CASE("html: the curves are in it; without gnuplot it says why not", "[colbench]") {
  need_gnuplot();
  const std::string drawn = html_report(good());
  CHECK(occurrences(drawn, "<svg") == 1);
  CHECK(drawn.find("Bus bandwidth, GB/s") != std::string::npos);
  CHECK(drawn.find("var(--faint)") != std::string::npos);
  const char* path = std::getenv("PATH");
  const std::string before = path != nullptr ? path : "";
  ::setenv("PATH", "/nonexistent", 1);
  const std::string page = html_report(good());
  ::setenv("PATH", before.c_str(), 1);
  CHECK(page.find("<svg") == std::string::npos);
  CHECK(page.find("Not drawn: there is no gnuplot on PATH") != std::string::npos);
  CHECK(parse_page(page).all("table").size() == 3);
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
  CHECK(root.all("table").size() == 3);
  CHECK(page.find("<b a") == std::string::npos);
  CHECK(occurrences(page, "</script>") == 1);
  CHECK(page.find('\x1b') == std::string::npos);
}
