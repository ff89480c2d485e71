// Groups made from the ranks of another.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "group/checks.hpp"
#include "group/state.hpp"
#include "group/use.hpp"

namespace col {

std::string Group::State::child_name(std::string_view kind) {
  const Use use(*this);
  return fmt::format("{}/{}{}", name(), kind, ++children_);
}

Group Group::State::subgroup(std::span<const int> ranks, std::string child) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  for (const int member : sorted) group::check_peer(member, "subgroup: rank", {name(), rank(), size()});
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("subgroup '{}': a rank is listed twice in [{}]", child, fmt::join(ranks, ", ")), name(),
                rank());
  const auto self = std::find(ranks.begin(), ranks.end(), rank());
  if (self == ranks.end()) return {};
  GroupSpec spec{.name = std::move(child),
                 .rank = static_cast<int>(self - ranks.begin()),
                 .world_size = static_cast<int>(ranks.size()),
                 .timeout = parts_.timeout};
  if (backend() != "self") spec.backend_name = backend();
  return host_.make_group(spec);
}

Group Group::split(int color, int key) {
  State& parent = state();
  struct Wish {
    int color, key;
  };
  const std::vector<Wish> choices = allgather_object(Wish{color, key});
  // Counted by every rank, also by one that joins nothing.
  const std::string base = parent.child_name("split");
  if (color < 0) return {};
  std::vector<int> members;
  for (int r = 0; r < size(); ++r) {
    if (choices[static_cast<std::size_t>(r)].color == color) members.push_back(r);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return choices[static_cast<std::size_t>(a)].key < choices[static_cast<std::size_t>(b)].key;
  });
  return parent.subgroup(members, fmt::format("{}.{}", base, color));
}

Group Group::subgroup(std::span<const int> ranks, std::string name) {
  // The ranks agree, or learn here that they do not, before those who join begin to wait for one another.
  std::string list = fmt::format("{}: {}", name, fmt::join(ranks, ", "));
  const std::vector<std::string> lists = allgather_object(list);
  for (int r = 0; r < size(); ++r) {
    if (lists[static_cast<std::size_t>(r)] == lists.front()) continue;
    throw Error(ErrorCode::mismatch,
                fmt::format("subgroup: rank {} asks for '{}', rank 0 for '{}'; all ranks must ask for the same", r,
                            lists[static_cast<std::size_t>(r)], lists.front()),
                this->name(), r);
  }
  return state().subgroup(ranks, std::move(name));
}

Group Group::dup() {
  State& parent = state();
  barrier();
  std::vector<int> everybody;
  for (int r = 0; r < size(); ++r) everybody.push_back(r);
  return parent.subgroup(everybody, parent.child_name("dup"));
}

}  // namespace col
