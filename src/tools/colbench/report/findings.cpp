#include "colbench/report/findings.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/facets.hpp"
#include "colbench/report/summary.hpp"
#include "colbench/report/values.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

// "allreduce 32M, ring over shm".
std::string title_of(const Cell& cell) {
  std::string text = value_of(cell, Facet::operation);
  for (const Facet facet : {Facet::size, Facet::algorithm, Facet::backend}) {
    const std::string words = words_of(cell, facet);
    if (words.empty()) continue;
    text += facet == Facet::algorithm ? ", " : facet == Facet::backend ? " over " : " ";
    text += words;
  }
  return text;
}

std::string subject_of(const Results& results) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> names;
  for (const Cell& cell : results.cells) {
    const std::string name = value_of(cell, Facet::operation);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.empty()) return "colbench";
  if (names.size() > kMost) return tools::counted(names.size(), "operation");
  return fmt::format("{}", fmt::join(names, ", "));
}

struct Distance {
  const Cell* cell;
  double fraction;
  double median;
};

void add_distances(const Results& results, std::vector<std::string>& sentences) {
  std::vector<Distance> distances;
  for (const Cell& cell : results.cells) {
    const CellStatistics statistics = statistics_of(cell);
    if (const auto fraction = bound_fraction(cell, statistics)) {
      distances.push_back({&cell, *fraction, statistics.median});
    }
  }
  if (distances.empty()) return;
  const auto [far, near] = std::minmax_element(
      distances.begin(), distances.end(), [](const Distance& a, const Distance& b) { return a.fraction < b.fraction; });
  sentences.push_back(fmt::format("Furthest from what this machine allows: {}, at {} % of the bound ({}, bound {}).",
                                  title_of(*far->cell), percent_text(far->fraction), time_text(far->median),
                                  time_text(far->cell->bound.seconds)));
  if (distances.size() > 1) {
    sentences.push_back(fmt::format("Nearest to it: {}, at {} % ({}).", title_of(*near->cell),
                                    percent_text(near->fraction), time_text(near->median)));
  }
}

}  // namespace

Findings findings_of(const Results& results) {
  const Summary summary = summary_of(results);
  Findings findings;
  findings.subject = subject_of(results);
  const bool bad = summary.invalid > 0 || summary.wrong > 0 || !results.ended_early.empty();
  const bool whole = summary.measured > 0 && summary.measured == summary.rows && summary.verified == summary.to_verify;
  findings.tone = bad ? "bad" : whole ? "good" : "odd";
  findings.headline = fmt::format("{} {} measured; {}",
                                  bad     ? "✘"
                                  : whole ? "✔"
                                          : "–",
                                  tools::counted(summary.measured, "row"), verification_text(summary));
  if (summary.measured == 0) findings.headline = bad ? "✘ nothing was measured" : "– nothing was measured";
  if (summary.invalid > 0) findings.headline += fmt::format("; {} invalid", tools::counted(summary.invalid, "row"));
  if (!results.ended_early.empty()) {
    findings.headline += "; ended early: " + tools::one_line(results.ended_early);
  }
  add_distances(results, findings.sentences);
  for (const Reason& reason : reasons_of(results)) {
    findings.sentences.push_back(fmt::format("{} {}: {}.", tools::counted(reason.cells.size(), "row"),
                                             reason.measured ? "invalid" : "not measured", reason.text));
  }
  const std::string stop = stop_text(summary);
  if (!stop.empty()) findings.sentences.push_back(stop + ".");
  return findings;
}

}  // namespace col::colbench
