// What a property works with on one rank.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "colcheck/engine/case.hpp"

namespace col::colcheck {

// One rank of a case's group. Not thread safe.
class Rank {
 public:
  // A null `group` is for properties that need none.
  Rank(Context& context, Group group, const std::string& backend, Duration timeout)
      : context_(&context), group_(std::move(group)), backend_(backend), timeout_(timeout) {}

  // All ranks of the case. A property may use it, but must not leave anything in flight, and must not break it on
  // purpose.
  Group& group() { return group_; }
  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  Context& context() { return *context_; }
  // For one call.
  Duration timeout() const { return timeout_; }

  // A new group of those ranks of group(), in that order, over the same backend. On other ranks, it converts to false.
  // It is not collective over these. But all ranks of the case must ask for groups in the same order, because the names
  // are counted. A property that breaks a group on purpose breaks one of these. The group lives until drop() or the end
  // of the context.
  Group make_group(std::span<const int> ranks, Duration timeout = {});
  // A group of all ranks.
  Group make_group(Duration timeout = {});
  void drop(Group& group);
  // Drops what a property has left. Called after every case.
  void drop_all();

 private:
  Context* context_;
  Group group_;
  std::string backend_;
  Duration timeout_;
  int made_ = 0;
  std::vector<std::string> kept_ = {};  // names of groups that have been made and not dropped
};

}  // namespace col::colcheck
