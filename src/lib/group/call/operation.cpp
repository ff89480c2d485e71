#include "group/call/operation.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/hash.hpp"
#include "core/joined.hpp"

namespace col::group {

ConstTensorView common_view(const Request& request) {
  // A root alone has the longer side; where all have both, the input.
  const CollectiveRow& row = row_of(request.collective);
  const bool is_tree = request.order == Order::tree && !row.out_on_root;
  const bool is_in_out = row.in == Extent::nothing || row.out == Extent::block || is_tree;
  return is_in_out ? ConstTensorView(request.out) : request.in;
}

namespace {

// The counts that all ranks know.
std::span<const std::size_t> common_counts(const Request& request) {
  const CollectiveRow& row = row_of(request.collective);
  if (row.counts != BlockCounts::everyone) return {};
  return row.out == Extent::blocks ? request.out_counts : request.in_counts;
}

// The elements that all ranks know; nothing where they do not.
std::optional<std::size_t> common_count(const Request& request, const CallForm& form) {
  const CollectiveRow& row = row_of(request.collective);
  if (row.has_private_counts()) return std::nullopt;
  if (request.order != Order::tree || !row.out_on_root) return common_view(request).count;
  return form.length != 0 ? std::optional(form.length) : std::nullopt;
}

// A user's operator may have any name; a call in words is one line.
std::string in_one_line(std::string_view name) {
  std::string line(name);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace

std::string describe(const Request& request, const CallForm& form) {
  const Collective c = request.collective;
  std::string text = form.part_of.empty() ? "" : fmt::format("{}: ", form.part_of);
  text += fmt::format("{}{}", form.asynchronous ? "i" : "", to_string(c));
  const std::string_view dtype = to_string(common_view(request).dtype);
  const std::optional<std::size_t> count = common_count(request, form);
  if (const auto counts = common_counts(request); !counts.empty())
    text += fmt::format(" of [{}] {}", core::joined(counts, ","), dtype);
  else if (!count)
    text += fmt::format(" of {}", dtype);
  else if (c != Collective::barrier)
    text += fmt::format(" of {} {}", form.piece.whole != 0 ? form.piece.whole : *count, dtype);
  if (form.piece.whole != 0) text += fmt::format(", from element {} on", form.piece.first);
  if (row_of(c).reduces()) text += fmt::format(", {}", in_one_line(request.op.name()));
  if (request.order == Order::rank) text += ", in rank order";
  if (request.order == Order::tree) text += ", in the tree's order";
  if (request.contributions != 0) text += fmt::format(" of {} contributions", request.contributions);
  if (row_of(c).rooted) text += fmt::format(", root {}", request.root);
  if (form.compress) text += ", compress";
  if (!form.algorithm.empty()) text += fmt::format(", by {}", form.algorithm);
  return text;
}

std::uint64_t fingerprint(std::uint64_t group_token, const Request& request, const CallForm& form) {
  const Collective c = request.collective;
  const ConstTensorView view = common_view(request);
  core::Hash hash;
  hash.add(group_token).add(static_cast<int>(c)).add(static_cast<int>(view.dtype));
  const auto counts = common_counts(request);
  for (const std::size_t count : counts) hash.add(count);
  if (const auto count = common_count(request, form); count && counts.empty()) hash.add(*count);
  if (row_of(c).reduces()) hash.add(request.op.name()).add(static_cast<int>(request.op.kind()));
  if (row_of(c).rooted) hash.add(request.root);
  if (request.order != Order::any) hash.add(static_cast<int>(request.order)).add(request.contributions);
  hash.add(form.asynchronous).add(form.compress).add(form.algorithm).add(form.piece.first).add(form.piece.whole);
  if (!form.part_of.empty()) hash.add(form.part_of);
  return hash.value();
}

RankRuns runs_of(const std::vector<int>& ranks) {
  RankRuns runs;
  for (const int rank : ranks) {
    if (!runs.empty() && runs.back().second == rank - 1)
      runs.back().second = rank;
    else
      runs.emplace_back(rank, rank);
  }
  return runs;
}

std::vector<int> ranks_of(const RankRuns& runs, int world_size) {
  std::vector<int> ranks;
  for (const auto& [first, last] : runs) {
    for (int rank = std::max(first, 0); rank <= std::min(last, world_size - 1); ++rank) ranks.push_back(rank);
  }
  return ranks;
}

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kMostParts = 20;
  std::vector<std::string> parts;
  std::size_t named = 0;
  for (const auto& [first, last] : runs_of(ranks)) {
    if (parts.size() == kMostParts) break;
    if (first == last)
      parts.push_back(fmt::format("{}", first));
    else
      parts.push_back(fmt::format("{}{}{}", first, last == first + 1 ? ", " : "-", last));
    named += static_cast<std::size_t>(last - first + 1);
  }
  return fmt::format("{} {}{}", ranks.size() == 1 ? "rank" : "ranks", core::joined(parts, ", "),
                     named < ranks.size() ? fmt::format(" and {} more", ranks.size() - named) : "");
}

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

std::vector<int> all_but(int rank, int size) {
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r) {
    if (r != rank) ranks.push_back(r);
  }
  return ranks;
}

Operation operation_of(const CollectiveCall& call, std::uint64_t sequence, int rank, int size) {
  const Request& request = call.request;
  Operation operation{.text = call.words.empty() ? describe(request, call.form) : call.words,
                      .sequence = sequence,
                      .counterparts = all_but(rank, size)};
  const CollectiveRow& row = row_of(request.collective);
  if (!row.has_private_counts()) return operation;
  const auto n = static_cast<std::size_t>(size);
  operation.in_counts.assign(n, 0);
  operation.out_counts.assign(n, 0);
  const bool is_root = rank == request.root;
  const auto root = static_cast<std::size_t>(request.root);
  if (row.counts == BlockCounts::pairs || is_root) {
    if (!request.in_counts.empty()) operation.in_counts.assign(request.in_counts.begin(), request.in_counts.end());
    if (!request.out_counts.empty()) operation.out_counts.assign(request.out_counts.begin(), request.out_counts.end());
  } else if (row.in == Extent::block) {
    operation.in_counts[root] = request.in.count;
  } else {
    operation.out_counts[root] = request.out.count;
  }
  return operation;
}

std::string Operation::encode() const {
  if (in_counts.empty() && out_counts.empty()) return text;
  return fmt::format("{}\n{}\n{}", text, core::joined(in_counts, ","), core::joined(out_counts, ","));
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
    calls.push_back(
        fmt::format("{} {} called {}", ranks.size() == 1 ? "rank" : "ranks", core::joined(ranks, ", "), text));
  }
  const int about = own.collective ? odd : own.counterparts.front();
  return Error(ErrorCode::mismatch,
               fmt::format("{}{} (operation {}); {}", odd >= 0 ? fmt::format("rank {} is the odd one; ", odd) : "",
                           core::joined(calls, "; "), own.sequence,
                           own.collective ? "every rank must make the same calls in the same order"
                                          : "a send and its recv must have the same count and dtype"),
               group, about);
}

}  // namespace col::group
