#include "colcheck/engine/property.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace col::colcheck {

bool Selection::wants_algorithm(std::string_view algorithm) const {
  if (algorithms.empty()) return true;
  return std::any_of(algorithms.begin(), algorithms.end(), [&](const std::string& wanted) {
    return algorithm == wanted || algorithm.substr(0, algorithm.find(':')) == wanted;
  });
}

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

GroupSpec Rank::spec_of_all(const std::string& name) const {
  return {.name = name, .rank = rank(), .world_size = size(), .backend_name = backend_, .timeout = timeout_};
}

void Rank::drop(Group& group) {
  if (!group) return;
  const std::string name(group.name());
  group = {};
  std::erase(kept_, name);
  context_->destroy_group(name);
}

std::optional<Error> Rank::drop_all() {
  std::optional<Error> first;
  for (const std::string& name : std::exchange(kept_, {})) {
    try {
      context_->destroy_group(name);
    } catch (const Error& error) {
      if (!first) first = error;
    }
  }
  return first;
}

}  // namespace col::colcheck
