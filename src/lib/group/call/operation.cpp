#include "group/call/operation.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace col::group {
namespace {

// The text, then for an alltoallv two lines with the counts.
struct Posted {
  std::string text;
  std::vector<std::size_t> in_counts, out_counts;
};

std::vector<std::size_t> numbers(std::string_view line) {
  std::vector<std::size_t> values;
  for (std::size_t value = 0; !line.empty();) {
    const std::size_t comma = std::min(line.find(','), line.size());
    value = 0;
    for (const char digit : line.substr(0, comma)) value = value * 10 + static_cast<std::size_t>(digit - '0');
    values.push_back(value);
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  return values;
}

Posted decode(std::string_view value) {
  const auto take_line = [&value] {
    const std::size_t end = std::min(value.find('\n'), value.size());
    const std::string_view line = value.substr(0, end);
    value.remove_prefix(std::min(end + 1, value.size()));
    return line;
  };
  Posted posted;
  posted.text = take_line();
  posted.in_counts = numbers(take_line());
  posted.out_counts = numbers(take_line());
  return posted;
}

std::size_t at(const std::vector<std::size_t>& counts, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  return index < counts.size() ? counts[index] : 0;
}

// Two ranks that disagree on a block that only they exchange.
std::optional<Error> block_mismatch(const Operation& own, int own_rank, const Posted& other, int rank,
                                    std::string_view group) {
  const auto error = [&](int sender, std::size_t sent, int receiver, std::size_t expected) {
    return Error(
        ErrorCode::mismatch,
        fmt::format("{}: rank {} sends {} elements to rank {}, which expects {} (operation {}); in_counts[{}] of "
                    "rank {} must equal out_counts[{}] of rank {}",
                    own.text, sender, sent, receiver, expected, own.sequence, receiver, sender, sender, receiver),
        group, -1);
  };
  if (at(own.in_counts, rank) != at(other.out_counts, own_rank))
    return error(own_rank, at(own.in_counts, rank), rank, at(other.out_counts, own_rank));
  if (at(own.out_counts, rank) != at(other.in_counts, own_rank))
    return error(rank, at(other.in_counts, own_rank), own_rank, at(own.out_counts, rank));
  return std::nullopt;
}

}  // namespace

std::string Operation::encode() const {
  if (in_counts.empty() && out_counts.empty()) return text;
  return fmt::format("{}\n{}\n{}", text, fmt::join(in_counts, ","), fmt::join(out_counts, ","));
}

bool matches(const Operation& own, int own_rank, const std::string& posted, int rank) {
  const Posted other = decode(posted);
  return other.text == own.text && !block_mismatch(own, own_rank, other, rank, {});
}

std::optional<Error> judge(const Operation& own, int own_rank, const std::map<int, std::string>& posted,
                           std::string_view group, bool final) {
  std::map<std::string, std::vector<int>> callers;
  callers[own.text].push_back(own_rank);
  for (const auto& [rank, value] : posted) {
    const Posted other = decode(value);
    if (other.text == own.text) {
      if (auto error = block_mismatch(own, own_rank, other, rank, group)) return error;
    }
    callers[other.text].push_back(rank);
  }
  for (auto& [text, ranks] : callers) std::sort(ranks.begin(), ranks.end());
  const auto most = std::max_element(callers.begin(), callers.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const std::size_t participants = own.counterparts.size() + 1;
  const bool majority = 2 * most->second.size() > participants;
  if (!majority && posted.size() + 1 < participants && !final) return std::nullopt;

  int odd = -1;
  std::vector<std::string> calls;
  for (const auto& [text, ranks] : callers) {
    if (odd < 0 && (majority ? text != most->first : text == kHasLeft)) odd = ranks.front();
    calls.push_back(fmt::format("{} {} called {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), text));
  }
  const int about = own.collective ? odd : own.counterparts.front();
  return Error(ErrorCode::mismatch,
               fmt::format("{}{} (operation {}); {}", odd >= 0 ? fmt::format("rank {} is the odd one; ", odd) : "",
                           fmt::join(calls, "; "), own.sequence,
                           own.collective ? "every rank must make the same calls in the same order"
                                          : "a send and its recv must have the same count and dtype"),
               group, about);
}

}  // namespace col::group
