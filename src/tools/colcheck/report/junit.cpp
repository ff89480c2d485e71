#include "colcheck/report/report.hpp"

#include <cstddef>

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::colcheck {
namespace {

std::string attribute(std::string_view name, std::string_view value) {
  return fmt::format(" {}=\"{}\"", name, tools::markup(value));
}

std::string totals(const Count& count, std::size_t errors) {
  return fmt::format(" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", count.all() + errors, count.failed,
                     errors, count.skipped);
}

// What a reader of a failure needs.
std::string details(const CaseResult& result) {
  std::string text = found_by(result);
  std::string token = token_of(result.c);
  if (!result.smallest_token.empty()) {
    text += fmt::format("\nsmallest: {}{}{}", result.smallest_token, result.smallest_text.empty() ? "" : ": ",
                        result.smallest_text);
    token = result.smallest_token;
  }
  return text + "\nrun: colcheck --repro " + tools::shell_quoted(token);
}

// ".shm", ".nccl-cuda", ".nccl-cuda-fake".
std::string place_of(const CaseResult& result, bool fake) {
  const Case& c = result.c;
  if (c.backend.empty()) return "";
  if (!needs_gpu(c.devices, c.backend)) return "." + c.backend;
  return fmt::format(".{}-{}{}", c.backend, to_string(c.devices), fake ? "-fake" : "");
}

std::string test_case(const CaseResult& result, bool fake) {
  std::string text = "    <testcase" +
                     attribute("classname", "colcheck." + result.c.property + place_of(result, fake)) +
                     attribute("name", token_of(result.c));
  switch (result.verdict) {
    case Finding::Verdict::pass:
      return text + "/>\n";
    case Finding::Verdict::skip:
      return text + ">\n      <skipped" + attribute("message", tools::one_line(result.text)) + "/>\n    </testcase>\n";
    case Finding::Verdict::fail:
      break;
  }
  return text + ">\n      <failure type=\"failure\"" + attribute("message", tools::one_line(found_by(result))) + ">" +
         tools::markup(details(result)) + "</failure>\n    </testcase>\n";
}

std::string suite_start(const Results& results, const std::string& name, const Count& count, std::size_t errors) {
  // The usual schemas take no time zone; it is UTC.
  std::string started = results.started;
  if (started.ends_with('Z')) started.pop_back();
  std::string text = "  <testsuite" + attribute("name", name) + totals(count, errors);
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
  const Tally counts = tally(results);
  const std::size_t errors = results.ended_early.empty() ? 0 : 1;
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"colcheck\"" +
                     totals(counts.total, errors) + fmt::format(" time=\"{:.3f}\">\n", results.seconds);
  for (const PropertyCount& property : counts.properties) {
    text += suite_start(results, "colcheck." + property.name, property.total, 0);
    for (const CaseResult& result : results.cases) {
      if (result.c.property == property.name) text += test_case(result, has_fake(results.gpus));
    }
    text += "  </testsuite>\n";
  }
  if (errors > 0) {
    text += suite_start(results, "colcheck", {}, errors) +
            "    <testcase classname=\"colcheck\" name=\"the run comes to its end\">\n      <error type=\"error\"" +
            attribute("message", tools::one_line(results.ended_early)) + ">" + tools::markup(results.ended_early) +
            "</error>\n    </testcase>\n  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

}  // namespace col::colcheck
