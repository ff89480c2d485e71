#include "colcheck/report/report.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "colcheck/properties/list.hpp"
#include "common/text.hpp"

namespace col::colcheck {
namespace {

std::string attribute(std::string_view name, std::string_view value) {
  return fmt::format(" {}=\"{}\"", name, tools::markup(value));
}

// Cases that are one test: it has the same name at every run. Which counts, types and roots it is made of, the seed
// draws.
struct Test {
  std::string classname, name;
  std::vector<const CaseResult*> cases = {};

  std::size_t count(Finding::Verdict verdict) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(cases, [&](const CaseResult* result) { return result->verdict == verdict; }));
  }
  bool failed() const { return count(Finding::Verdict::fail) > 0; }
  bool skipped() const { return count(Finding::Verdict::skip) == cases.size(); }
};

std::string totals(std::span<const Test> tests, std::size_t errors) {
  const auto count = [&](bool (Test::*is)() const) {
    return std::ranges::count_if(tests, [&](const Test& test) { return (test.*is)(); });
  };
  return fmt::format(" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", tests.size() + errors,
                     count(&Test::failed), errors, count(&Test::skipped));
}

// What a reader of a failure needs.
std::string details(const CaseResult& result) {
  const std::string smallest = smallest_of(result);
  return found_by(result) + (smallest.empty() ? "" : "\n" + smallest) + "\nrun: " + repro_of(result);
}

// ".shm", ".nccl-cuda", ".nccl-cuda-fake".
std::string place_of(const CaseResult& result, bool fake) {
  const Case& c = result.c;
  if (c.backend.empty()) return "";
  if (!needs_gpu(c.devices, c.backend)) return "." + c.backend;
  return fmt::format(".{}-{}{}", c.backend, to_string(c.devices), fake ? "-fake" : "");
}

std::string name_of(const Case& c) {
  const Property* property = find_property(c.property);
  std::string name(property != nullptr && property->draws_primitives ? "drawn calls" : to_string(c.primitive));
  // The other properties take algorithms in turn, and begin with another one at every run.
  if (c.property == "exact" && !c.algorithm.empty()) name += " by " + c.algorithm;
  return name;
}

// In the order of their first cases.
std::vector<Test> tests_of(const Results& results, std::string_view property) {
  const bool fake = has_fake(results.gpus);
  std::vector<Test> tests;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const CaseResult& result : results.cases) {
    if (result.c.property != property) continue;
    Test test{"colcheck." + result.c.property + place_of(result, fake), name_of(result.c)};
    const auto [entry, is_new] = known.try_emplace({test.classname, test.name}, tests.size());
    if (is_new) tests.push_back(std::move(test));
    tests[entry->second].cases.push_back(&result);
  }
  return tests;
}

std::string test_case(const Test& test) {
  constexpr std::size_t kMostFailures = 20;
  double seconds = 0;
  for (const CaseResult* result : test.cases) seconds += result->seconds;
  std::string text = "    <testcase" + attribute("classname", test.classname) + attribute("name", test.name) +
                     fmt::format(" time=\"{:.6f}\">\n      <properties>\n", seconds);
  for (const CaseResult* result : test.cases)
    text += "        <property name=\"draw\"" + attribute("value", token_of(result->c)) + "/>\n";
  text += "      </properties>\n";
  std::vector<const CaseResult*> failures;
  for (const CaseResult* result : test.cases) {
    if (result->verdict == Finding::Verdict::fail) failures.push_back(result);
  }
  if (test.skipped()) {
    text += "      <skipped" + attribute("message", tools::one_line(test.cases.front()->text)) + "/>\n";
  } else if (!failures.empty()) {
    text +=
        "      <failure type=\"failure\"" + attribute("message", tools::one_line(found_by(*failures.front()))) + ">";
    for (std::size_t i = 0; i < std::min(failures.size(), kMostFailures); ++i)
      text += (i > 0 ? "\n" : "") + tools::markup(details(*failures[i]));
    if (failures.size() > kMostFailures) text += fmt::format("\nand {} more", failures.size() - kMostFailures);
    text += "</failure>\n";
  }
  return text + "    </testcase>\n";
}

std::string suite_start(const Results& results, const std::string& name, std::span<const Test> tests,
                        std::size_t errors) {
  // The usual schemas take no time zone; it is UTC.
  std::string started = results.started;
  if (started.ends_with('Z')) started.pop_back();
  std::string text = "  <testsuite" + attribute("name", name) + totals(tests, errors);
  if (!started.empty()) text += attribute("timestamp", started);
  if (!results.host.empty()) text += attribute("hostname", results.host);
  text += ">\n    <properties>\n";
  for (const auto& [fact, value] : facts_of(results)) {
    text += "      <property" + attribute("name", fact) + attribute("value", value) + "/>\n";
  }
  return text + "    </properties>\n";
}

}  // namespace

std::string junit_report(const Results& results) {
  const std::size_t errors = results.ended_early.empty() ? 0 : 1;
  std::string suites;
  std::vector<Test> all;
  for (const PropertyCount& property : tally(results).properties) {
    std::vector<Test> tests = tests_of(results, property.name);
    suites += suite_start(results, "colcheck." + property.name, tests, 0);
    for (const Test& test : tests) suites += test_case(test);
    suites += "  </testsuite>\n";
    std::ranges::move(tests, std::back_inserter(all));
  }
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"colcheck\"" + totals(all, errors) +
                     fmt::format(" time=\"{:.3f}\">\n", results.seconds) + suites;
  if (errors > 0) {
    text += suite_start(results, "colcheck", {}, errors) +
            "    <testcase classname=\"colcheck\" name=\"the run comes to its end\">\n      <error type=\"error\"" +
            attribute("message", tools::one_line(results.ended_early)) + ">" + tools::markup(results.ended_early) +
            "</error>\n    </testcase>\n  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

}  // namespace col::colcheck
