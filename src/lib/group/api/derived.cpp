// Methods that make groups from the ranks of another.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "group/call/composite.hpp"
#include "group/diagnosis/most_common.hpp"
#include "group/state.hpp"

namespace col {

Group Group::split(int color, int key) {
  const group::Composite composite("split");
  const group::Turn turn(state().access(), timeout());
  group::Family& parent = state().family();
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
  const group::Composite composite("subgroup");
  const group::Turn turn(state().access(), timeout());
  // The ranks agree, or learn here that they do not, before those who join begin to wait for one another.
  // A rank that has the name already cannot join, and the others must not wait for it.
  const bool joins = std::find(ranks.begin(), ranks.end(), rank()) != ranks.end();
  const std::vector<int> taken = allgather_object(joins && state().family().has_group(name) ? 1 : 0);
  std::string list = fmt::format("{}: {}", name, fmt::join(ranks, ", "));
  const std::vector<std::string> lists = allgather_object(list);
  const bool agree = std::all_of(lists.begin(), lists.end(), [&](const auto& other) { return other == list; });
  const std::string& common = agree ? list : lists[group::most_common(lists)];
  for (std::size_t r = 0; r < lists.size(); ++r) {
    if (lists[r] == common) continue;
    throw Error(ErrorCode::mismatch,
                fmt::format("subgroup: rank {} asks for '{}', most others for '{}'; all ranks must ask for the same", r,
                            lists[r], common),
                this->name(), static_cast<int>(r), world_rank(static_cast<int>(r)));
  }
  const auto holder = std::find(taken.begin(), taken.end(), 1);
  if (holder != taken.end())
    throw Error(
        ErrorCode::already_initialized,
        fmt::format("subgroup: rank {} is in a group '{}' already; choose another name", holder - taken.begin(), name),
        this->name(), static_cast<int>(holder - taken.begin()), world_rank(static_cast<int>(holder - taken.begin())));
  return state().family().subgroup(ranks, std::move(name));
}

Group Group::dup() {
  const group::Composite composite("dup");
  const group::Turn turn(state().access(), timeout());
  group::Family& parent = state().family();
  barrier();
  std::vector<int> everybody;
  for (int r = 0; r < size(); ++r) everybody.push_back(r);
  return parent.subgroup(everybody, parent.child_name("dup"));
}

Group Group::shrink(std::span<const int> excluded, std::string name) {
  const group::Turn turn(state().access(), timeout());
  return state().family().shrink(excluded, std::move(name));
}

}  // namespace col
