#include "colcheck/rank.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace col::colcheck {

Group Rank::make_group(std::span<const int> ranks, Duration timeout) {
  const std::string name = fmt::format("{}/{}", group_.name(), made_++);
  const auto self = std::find(ranks.begin(), ranks.end(), rank());
  if (self == ranks.end()) return {};
  kept_.push_back(name);
  return context_->init_group({.name = name,
                               .rank = static_cast<int>(self - ranks.begin()),
                               .world_size = static_cast<int>(ranks.size()),
                               .backend_name = backend_,
                               .timeout = timeout > Duration::zero() ? timeout : timeout_});
}

Group Rank::make_group(Duration timeout) {
  std::vector<int> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  return make_group(all, timeout);
}

void Rank::drop(Group& group) {
  if (!group) return;
  const std::string name(group.name());
  group = {};
  std::erase(kept_, name);
  context_->destroy_group(name);
}

void Rank::drop_all() {
  for (const std::string& name : std::exchange(kept_, {})) context_->destroy_group(name);
}

}  // namespace col::colcheck
