#include "colcheck/faults/judge.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "launch/processes/signals.hpp"

namespace col::colcheck {
namespace {

// More processes than this are too many for a drill.
constexpr int kMostRanks = 8;

std::string about(int rank) {
  return rank < 0 ? "about no rank" : fmt::format("about rank {}", rank);
}

// The end of what a rank printed, as one line.
std::string last_words(const RankEnd& end) {
  std::string text = end.output;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  constexpr std::size_t kMost = 300;
  if (text.size() > kMost) text = "…" + text.substr(text.size() - kMost);
  return text.empty() ? "" : fmt::format(" (it printed: {})", text);
}

}  // namespace

std::vector<int> drill_ranks(const Selection& selection, int least) {
  std::vector<int> usual, more, fewer;
  for (const int ranks : selection.ranks) {
    if (ranks == 3 || ranks == 4) usual.push_back(ranks);
    if (ranks > 4 && ranks <= kMostRanks) more.push_back(ranks);
    if (ranks == 2 && ranks >= least) fewer.push_back(ranks);
  }
  if (!usual.empty()) return usual;
  if (!more.empty()) return {more.front()};
  return fewer;
}

std::vector<std::string> drill_backends(const Selection& selection) {
  std::vector<std::string> names = selection.backends;
  if (!are_ranks_elsewhere()) std::erase_if(names, is_over_hosts);
  return names;
}

Case& DrillCases::add(const std::string& backend, Primitive primitive, DType dtype, std::size_t count) {
  Case& c = cases_.emplace_back();
  c.property = property_;
  c.backend = backend;
  c.seed = mix(selection_.seed, ++number_);
  c.ranks = ranks_[number_ % ranks_.size()];
  c.primitive = primitive;
  if (primitive != Primitive::barrier) {
    c.dtype = dtype;
    c.count = count;
  }
  if (is_rooted(primitive)) c.root = static_cast<int>(mix(c.seed, 1) % static_cast<std::uint64_t>(c.ranks));
  return c;
}

int victim_of(const Case& c) {
  return static_cast<int>(mix(c.seed, 2) % static_cast<std::uint64_t>(c.ranks));
}

std::string describe(const JobEnd& end, int rank) {
  const RankEnd& one = end.of(rank);
  if (one.report && one.report->good()) return fmt::format("rank {} noticed nothing", rank);
  if (one.report)
    return fmt::format("rank {} got {} ({}) in {} after {:.2f} s: {}", rank, one.report->code,
                       about(one.report->error_rank), one.report->doing, one.report->seconds, one.report->message);
  if (one.overdue) return fmt::format("rank {} did not end in {:.1f} s and was killed", rank, one.ended_at);
  if (one.ending.signal != 0)
    return fmt::format("rank {} was killed by {}{}", rank, launch::signal_name(one.ending.signal), last_words(one));
  return fmt::format("rank {} exited with {} and reported nothing{}", rank, one.ending.exit_code, last_words(one));
}

std::string problem_with_end(const JobEnd& end, int rank) {
  const RankEnd& one = end.of(rank);
  if (!one.report) return describe(end, rank);
  if (one.overdue) return fmt::format("{}; then it did not end and was killed", describe(end, rank));
  if (one.ending.signal != 0)
    return fmt::format("{}; then it was killed by {}{}", describe(end, rank), launch::signal_name(one.ending.signal),
                       last_words(one));
  return {};
}

std::string problem_with_errors(const JobEnd& end, const Expectation& expectation) {
  const std::string expected = fmt::format("; expected {} {}", to_string(expectation.code), about(expectation.culprit));
  const auto& exempt = expectation.exempt;
  for (int rank = 0; rank < static_cast<int>(end.ranks.size()); ++rank) {
    if (std::find(exempt.begin(), exempt.end(), rank) != exempt.end()) continue;
    std::string problem = problem_with_end(end, rank);
    if (!problem.empty()) return problem + expected;
    const RankEnd& one = end.of(rank);
    const Report& report = *one.report;
    if (report.code != to_string(expectation.code) || report.error_rank != expectation.culprit)
      return describe(end, rank) + expected;
    const double late = one.reported_at - expectation.since;
    if (late > expectation.within)
      return fmt::format("{}; that is {:.2f} s after the fault, and at most {:.2f} s are allowed", describe(end, rank),
                         late, expectation.within);
    if (report.seconds < expectation.not_before)
      return fmt::format("{}; it gave up before {:.2f} s had passed", describe(end, rank), expectation.not_before);
    if (!report.later.empty() && report.later != to_string(ErrorCode::aborted))
      return fmt::format("{}; the next call ended with {}, not with aborted", describe(end, rank), report.later);
  }
  return {};
}

std::string problem_with_success(const JobEnd& end) {
  for (int rank = 0; rank < static_cast<int>(end.ranks.size()); ++rank) {
    std::string problem = problem_with_end(end, rank);
    if (problem.empty() && !end.of(rank).report->good()) problem = describe(end, rank);
    if (!problem.empty()) return problem + "; expected success";
  }
  return {};
}

std::string problem_with_traces(const JobEnd& end) {
  return end.left_behind.empty() ? "" : fmt::format("the job has left {} behind", end.left_behind);
}

std::string first_of(std::vector<std::string> problems) {
  for (std::string& problem : problems) {
    if (!problem.empty()) return std::move(problem);
  }
  return {};
}

}  // namespace col::colcheck
