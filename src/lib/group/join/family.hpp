// Groups made from the ranks of another.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/group.hpp>

#include "group/flight/access.hpp"
#include "group/flight/core.hpp"
#include "group/flight/lanes.hpp"

namespace col::group {

class Family {
 public:
  // What makes groups, and knows which there are. Not called after this group was destroyed.
  struct Host {
    // Takes the job's ranks of its members, in order.
    std::function<Group(const GroupSpec&, std::vector<int>)> make_group = {};
    std::function<bool(const std::string&)> has_group = {};
  };

  Family(Core& core, const Lanes& lanes, Access& access, const Host& host, bool is_high_priority_stream)
      : core_(core), lanes_(lanes), access_(access), host_(host), is_high_priority_stream_(is_high_priority_stream) {}

  // Connects the ranks, which all call it. An empty handle on a rank that is not among them.
  Group subgroup(std::span<const int> ranks, std::string name);
  Group shrink(std::span<const int> excluded, std::string name);
  // A new name, equal on all ranks if they ask equally often.
  std::string child_name(std::string_view kind);
  bool has_group(const std::string& group) const { return host_.has_group && host_.has_group(group); }

 private:
  std::vector<int> staying(std::span<const int> excluded) const;
  std::string agree_to_shrink(std::span<const int> excluded, const std::vector<int>& ranks, std::string child);

  Core& core_;
  const Lanes& lanes_;
  Access& access_;
  const Host& host_;
  const bool is_high_priority_stream_;
  std::uint64_t children_ = 0;  // groups made from this one
  std::uint64_t shrinks_ = 0;   // calls of shrink()
};

}  // namespace col::group
