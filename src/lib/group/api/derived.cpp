// Methods that make groups from the ranks of another.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/joined.hpp"
#include "group/call/composite.hpp"
#include "group/diagnosis/most_common.hpp"
#include "group/state.hpp"

namespace col {

Group Group::split(int color, int key) {
  const group::Composite composite("split");
  const group::Turn turn(state().access(), timeout());
  return state().family().split("split", color, key);
}

Group Group::subgroup(std::span<const int> ranks, std::string name) {
  const group::Composite composite("subgroup");
  const group::Turn turn(state().access(), timeout());
  // The ranks agree, or learn here that they do not, before those who join begin to wait for one another.
  const auto wishes = state().family().ask(ranks, name);
  const bool agree =
      std::all_of(wishes.begin(), wishes.end(), [&](const auto& wish) { return wish.order == wishes.front().order; });
  if (agree) return state().family().subgroup(ranks, std::move(name), wishes);
  const std::vector<std::string> lists = allgather_object(fmt::format("{}: {}", name, core::joined(ranks, ", ")));
  const std::string& common = lists[group::most_common(lists)];
  const auto odd = std::find_if(lists.begin(), lists.end(), [&](const auto& list) { return list != common; });
  const auto rank = static_cast<int>(odd - lists.begin());
  throw Error(ErrorCode::mismatch,
              fmt::format("subgroup: rank {} asks for '{}', most others for '{}'; all ranks must ask for the same",
                          rank, *odd, common),
              this->name(), rank, world_rank(rank));
}

Group Group::dup() {
  const group::Composite composite("dup");
  const group::Turn turn(state().access(), timeout());
  return state().family().split("dup", 0, 0);
}

Group Group::shrink(std::span<const int> excluded, std::string name) {
  const group::Turn turn(state().access(), timeout());
  return state().family().shrink(excluded, std::move(name));
}

}  // namespace col
