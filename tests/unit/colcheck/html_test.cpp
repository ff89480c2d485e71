#include "colcheck/report/report.hpp"

#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "markup.hpp"
#include "results.hpp"
#include "support/catch.hpp"

using namespace col::colcheck;

namespace {

// The page as XML: elements without an end tag get one.
Element parse_html(const std::string& page) {
  return parse_xml(std::regex_replace(page, std::regex("(<meta [^>]*)>"), "$1/>"));
}

// Neither a reference to elsewhere nor a script.
void check_attributes(const Element& element) {
  for (const auto& [name, value] : element.attributes) {
    CAPTURE(element.name, name, value);
    CHECK((name != "src" && name != "style" && !name.starts_with("on")));
    if (name == "href") CHECK(value.starts_with("#"));
  }
  for (const Element& child : element.children) check_attributes(child);
}

const Element* cell(const Element& page, const std::string& primitive, std::size_t column) {
  for (const Element* row : page.all("tr")) {
    if (row->children[0].text == primitive) return &row->children.at(column + 1);
  }
  return nullptr;
}

const Element* section(const Element& page, const std::string& id) {
  for (const Element* element : page.all("section")) {
    if (element->attributes.at("id") == id) return element;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("html: refers to nothing outside itself", "[colcheck]") {
  Results results = good_run();
  results.cases.push_back(failed("gloo", Primitive::scan, 2, "see https://example.com/x.css", 7));
  const std::string page = html_report(results);
  CHECK(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK(page.find("prefers-color-scheme: dark") != std::string::npos);
  for (const char* word : {"url(", "@import", "<script", "<link", "<img", "<base", "<iframe"}) {
    CHECK(page.find(word) == std::string::npos);
  }
  check_attributes(parse_html(page));
}

TEST_CASE("html: every cell says in words what its colour says", "[colcheck]") {
  Results results = good_run();
  results.cases.push_back(failed("gloo", Primitive::scan, 2, "wrong", 7));
  std::erase_if(results.cases, [](const CaseResult& result) {
    return result.c.primitive == Primitive::alltoall && result.c.backend == "gloo";
  });
  for (CaseResult& result : results.cases) {
    if (result.c.primitive == Primitive::gather) result.verdict = Finding::Verdict::skip;
  }
  const Element page = parse_html(html_report(results));
  const auto check = [&](const char* primitive, std::size_t column, const char* state, const char* words) {
    CAPTURE(primitive, column);
    const Element* found = cell(page, primitive, column);
    REQUIRE(found != nullptr);
    CHECK(found->attributes.at("class") == state);
    CHECK(found->text == words);
  };
  check("scan", 0, "good", "✔ 1 passed");
  check("scan", 1, "bad", "✘ 1 of 2 failed");
  check("scan", 2, "faint", "– not available [1]");
  check("alltoall", 1, "odd", "· none: a hole");
  check("gather", 0, "odd", "– all 1 skipped [2]");
  for (const Element* table : page.all("table")) {
    CHECK(table->all("caption").size() == 1);
    for (const Element* head : table->all("th")) CHECK(head->attributes.count("scope") == 1);
  }
}

TEST_CASE("html: GPUs are named, and stand-ins for them called fake", "[colcheck]") {
  const std::string page = html_report(gpu_run("fake GPU 0"));
  CHECK(occurrences(page, "nccl (cuda, fake)") == 2);
  CHECK(occurrences(page, "rank 1: fake GPU 0 0000:02:00.0") == 1);
}

TEST_CASE("html: facts, failures with their tokens, skips", "[colcheck]") {
  Results results = good_run();
  results.cases.push_back(failed("gloo", Primitive::scan, 2, "byte 3 is wrong", 7));
  results.cases.back().smallest_token = "exact,backend=gloo,np=2,coll=scan";
  results.cases.push_back(skipped("shm", Primitive::scan, "needs 4 GiB", 8));
  const Element page = parse_html(html_report(results));
  const Element* failure = section(page, "failures");
  REQUIRE(failure != nullptr);
  CHECK(failure->all("dt")[0]->text == "exact,backend=gloo,np=3,coll=scan,seed=0x7");
  CHECK(
      failure->all("dd")[0]->text.starts_with("rank 2: byte 3 is wrong; smallest: exact,backend=gloo,np=2,coll=scan"));
  CHECK(failure->all("code")[0]->text == "colcheck --repro 'exact,backend=gloo,np=2,coll=scan'");
  CHECK(section(page, "skipped")->all("li")[0]->text == "– all of nccl skipped: there is no libnccl.so.2");
  CHECK(section(page, "skipped")->all("li")[1]->text == "– 1 skipped: needs 4 GiB");
  CHECK(page.all("dt").size() == page.all("dd").size());
  CHECK(page.all("title")[0]->text ==
        fmt::format("colcheck: ✘ {} cases passed, 1 failed, 1 skipped, all of nccl skipped (a skip is not a pass) in "
                    "14.2 s; seed 0x1f",
                    kAllGoodCases));
}

TEST_CASE("html: the verdict is good only when something passed, nothing failed, and the run came to its end",
          "[colcheck]") {
  const auto verdict = [](const Results& results) {
    const Element page = parse_html(html_report(results));
    return page.all("p")[0]->attributes.at("class");
  };
  CHECK(verdict(good_run()) == "good verdict");
  CHECK(verdict(empty_run()) == "odd verdict");
  Results results = good_run();
  results.ended_early = "rank 3 died";
  CHECK(verdict(results) == "bad verdict");
}

TEST_CASE("html: well formed whatever the results hold, and not without end", "[colcheck]") {
  Results results = empty_run();
  results.command = results.host = results.ended_early = kNasty;
  results.unavailable[0] = {kNasty, kNasty};
  for (std::uint64_t seed = 0; seed < 502; ++seed) {
    results.cases.push_back(failed(kNasty, Primitive::scan, 1, kNasty, seed));
    results.cases.back().smallest_token = results.cases.back().smallest_text = kNasty;
  }
  results.cases.push_back(skipped("shm", Primitive::scan, kNasty));
  results.cases.push_back(passed("shm"));
  results.cases.back().c.property = kNasty;
  const std::string text = html_report(results);
  const Element page = parse_html(text);
  CHECK(text.find("<b a") == std::string::npos);
  CHECK(section(page, "failures")->all("dt").size() == 500);
  CHECK(text.find("… and 2 more (see --json)") != std::string::npos);
}
