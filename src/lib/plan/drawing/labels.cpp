#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "plan/drawing/trace.hpp"

namespace col::plan::drawing {
namespace {

using Range = std::pair<std::size_t, std::size_t>;  // first and last

std::string list(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::string text;
  for (std::size_t i = 0; i < ranges.size();) {
    Range range = ranges[i++];
    while (i < ranges.size() && ranges[i].first <= range.second + 1)
      range.second = std::max(range.second, ranges[i++].second);
    if (!text.empty()) text += ',';
    text +=
        range.first == range.second ? fmt::format("{}", range.first) : fmt::format("{}-{}", range.first, range.second);
  }
  return text;
}

// Ranks of a circle: "6-1" are 6, 7, 0 and 1 of eight.
std::string ranks(std::uint64_t mask, int size) {
  const auto has = [mask](int r) { return (mask >> r & 1) != 0; };
  int after_gap = 0;  // where to begin, so that no range is cut
  if (has(0) && has(size - 1)) {
    while (after_gap < size && has(after_gap)) ++after_gap;
    if (after_gap == size) return size == 1 ? "0" : fmt::format("0-{}", size - 1);
  }
  std::string text;
  for (int i = after_gap; i < after_gap + size; ++i) {
    if (!has(i % size)) continue;
    const int first = i;
    while (i + 1 < after_gap + size && has((i + 1) % size)) ++i;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first % size);
    if (i > first) text += fmt::format("-{}", i % size);
  }
  return text;
}

bool is_alltoall(const PlanProblem& problem) {
  const CollectiveRow& row = row_of(problem.spec().collective);
  return row.in == Extent::blocks && row.out == Extent::blocks;
}

// True if an element's place does not say yet whose it is.
bool names_inputs(const PlanProblem& problem) {
  return row_of(problem.spec().collective).reduces() || is_alltoall(problem);
}

bool goes_around(std::uint64_t mask, int size) {
  const std::uint64_t ends = std::uint64_t{1} | std::uint64_t{1} << (size - 1);
  return (mask & ends) == ends && ranks(mask, size) != fmt::format("0-{}", size - 1);
}

// Elements with equal history: the inputs of these ranks, combined or (in an alltoall) separate.
struct Group {
  bool is_result;
  std::uint64_t ranks;
  std::string elements;
};

std::vector<Group> groups(const PlanProblem& problem, const Message& message) {
  std::map<std::pair<bool, std::uint64_t>, std::vector<Range>> places;
  for (const Fragment& part : message.parts) {
    const bool is_result = part.payload == Payload::finished;
    const bool is_named = names_inputs(problem) && !is_result;
    places[{is_result, is_named ? part.ranks : 0}].emplace_back(part.place, part.place + part.count - 1);
  }
  std::vector<Group> groups;
  for (auto& [history, ranges] : places) {
    Group group{history.first, history.second, list(std::move(ranges))};
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& other) {
      return is_alltoall(problem) && other.elements == group.elements;
    });
    if (same == groups.end())
      groups.push_back(std::move(group));
    else
      same->ranks |= group.ranks;
  }
  return groups;
}

}  // namespace

std::string label(const PlanProblem& problem, const Message& message) {
  std::string text;
  for (const Group& group : groups(problem, message)) {
    if (!text.empty()) text += ' ';
    if (group.ranks != 0)
      text += 'x' + ranks(group.ranks, problem.size());
    else if (names_inputs(problem))
      text += 'y';
    text += '[' + group.elements + ']';
  }
  return text;
}

std::string explanation(const PlanProblem& problem, const Trace& trace) {
  if (!names_inputs(problem)) return "";
  bool combines = false, has_result = false, wraps = false;
  for (const Message& message : trace.messages) {
    for (const Group& group : groups(problem, message)) {
      combines = combines || (group.ranks & (group.ranks - 1)) != 0;
      has_result = has_result || group.ranks == 0;
      wraps = wraps || goes_around(group.ranks, problem.size());
    }
  }
  std::string text = "x0[3]: element 3 of rank 0's input";
  if (combines)
    text += is_alltoall(problem) ? "; x0-2[3]: of each of ranks 0 to 2" : "; x0-2[3]: of ranks 0 to 2, combined";
  if (wraps) text += fmt::format("; x{0}-0: of ranks {0} and 0", problem.size() - 1);
  if (has_result) text += "; y[3]: of the result";
  return text;
}

}  // namespace col::plan::drawing
