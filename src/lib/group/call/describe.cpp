#include "group/call/describe.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/hash.hpp"

namespace col::group {

ConstTensorView common_view(const Request& request) {
  // A root alone has the longer side; where all have both, the input.
  const CollectiveRow& row = row_of(request.collective);
  return row.in == Extent::nothing || row.out == Extent::block ? ConstTensorView(request.out) : request.in;
}

namespace {

// The counts that all ranks know.
std::span<const std::size_t> common_counts(const Request& request) {
  const CollectiveRow& row = row_of(request.collective);
  if (row.counts != BlockCounts::everyone) return {};
  return row.out == Extent::blocks ? request.out_counts : request.in_counts;
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
  const ConstTensorView view = common_view(request);
  if (const auto counts = common_counts(request); !counts.empty())
    text += fmt::format(" of [{}] {}", fmt::join(counts, ","), to_string(view.dtype));
  else if (row_of(c).has_private_counts())
    text += fmt::format(" of {}", to_string(view.dtype));
  else if (c != Collective::barrier)
    text += fmt::format(" of {} {}", form.piece.whole != 0 ? form.piece.whole : view.count, to_string(view.dtype));
  if (form.piece.whole != 0) text += fmt::format(", from element {} on", form.piece.first);
  if (row_of(c).reduces()) text += fmt::format(", {}", in_one_line(request.op.name()));
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
  if (counts.empty() && !row_of(c).has_private_counts()) hash.add(view.count);
  if (row_of(c).reduces()) hash.add(request.op.name()).add(static_cast<int>(request.op.kind()));
  if (row_of(c).rooted) hash.add(request.root);
  hash.add(form.asynchronous).add(form.compress).add(form.algorithm).add(form.piece.first).add(form.piece.whole);
  if (!form.part_of.empty()) hash.add(form.part_of);
  return hash.value();
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

}  // namespace col::group
