// Groups made from the ranks of another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/group.hpp>

#include "group/flight/access.hpp"
#include "group/flight/core.hpp"
#include "group/flight/lanes.hpp"
#include "group/join/join.hpp"
#include "group/run/collectives.hpp"

namespace col::group {

class Family {
 public:
  // What makes groups, and knows which there are. Not called after this group was destroyed.
  struct Host {
    // Takes the job's ranks of its members, in order; and their connections, if they have some already.
    std::function<Group(const GroupSpec&, std::vector<int>, std::optional<Connected>)> make_group = {};
    std::function<bool(const std::string&)> has_group = {};
    // The part of the store that is such a group's own: its name and token. It may not be made yet.
    std::function<std::shared_ptr<Store>(const std::string&, std::uint64_t)> scope_of = {};
  };

  Family(Core& core, Lanes& lanes, Access& access, Collectives& collectives, const Host& host,
         bool is_high_priority_stream, std::string nccl_settings)
      : core_(core),
        lanes_(lanes),
        access_(access),
        collectives_(collectives),
        host_(host),
        is_high_priority_stream_(is_high_priority_stream),
        nccl_settings_(std::move(nccl_settings)) {}

  // What a rank says before groups are made from this one.
  struct Wish {
    std::int64_t color = 0;    // negative: it joins none
    std::uint64_t order = 0;   // of split(): its key; of subgroup(): a hash of all that it asks for
    bool taken = false;        // it is in a group of that name already
    bool uses_gpu = false;     // it has made a GPU current
    bool can_connect = false;  // it can take part in what connect() does without the store
    bool can_split = false;    // the channel for GPUs can make that of a new group
  };

  // The new names are derived from this one's, by `kind`. Collective over this group.
  Group split(std::string_view kind, int color, int key);
  // subgroup() in two parts, for ranks that may ask for different things. ask() tells all ranks all wishes, by rank.
  std::vector<Wish> ask(std::span<const int> ranks, const std::string& name);
  // Requires: all ranks ask for the same.
  Group subgroup(std::span<const int> ranks, std::string name, const std::vector<Wish>& wishes);
  Group shrink(std::span<const int> excluded, std::string name);

 private:
  bool has_group(const std::string& group) const { return host_.has_group && host_.has_group(group); }
  void check_list(std::span<const int> ranks, const std::string& child) const;
  template <class T>
  std::vector<T> exchange(const T& own);
  std::vector<Wish> exchange_wishes(Wish own);
  void require_free(std::string_view call, const std::vector<Wish>& wishes, const std::string& name) const;
  Connected relatives(std::span<const int> ranks, const std::vector<Wish>& wishes);
  std::unique_ptr<Channel> split_channel(std::span<const int> ranks, const std::string& child, const Connected& known);
  void give_up(const std::string& child, const Connected& known, int rank, const Error& why) const;
  void reserve(const ConnectRequest& request, std::span<const int> ranks, Connected& known);
  void draft(const ConnectRequest& request, std::span<const int> ranks, Connected& known);
  std::optional<Connected> connect(std::span<const int> ranks, const std::string& child,
                                   const std::vector<Wish>& wishes);
  Group make(std::span<const int> ranks, std::string child, std::optional<Connected> connected, bool is_named);
  std::vector<int> staying(std::span<const int> excluded) const;
  std::string agree_to_shrink(std::span<const int> excluded, const std::vector<int>& ranks, std::string child);

  Core& core_;
  Lanes& lanes_;
  Access& access_;
  Collectives& collectives_;
  const Host& host_;
  const bool is_high_priority_stream_;
  const std::string nccl_settings_;
  std::uint64_t children_ = 0;     // calls of split()
  std::uint64_t connectings_ = 0;  // calls of connect()
  std::uint64_t shrinks_ = 0;      // calls of shrink()
};

}  // namespace col::group
