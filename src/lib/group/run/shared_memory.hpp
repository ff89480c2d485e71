// Memory that the ranks of a node share.
#pragma once

#include <cstddef>
#include <memory>

#include <col/group.hpp>

#include "group/run/collectives.hpp"

namespace col::group {

class SharedMemory {
 public:
  SharedMemory(Core& core, Lanes& lanes, Access& access, Collectives& collectives)
      : core_(core), lanes_(lanes), access_(access), collectives_(collectives) {}

  // A collective call. Throws on all ranks: mismatch if they ask for different sizes, resource if one has no room.
  std::shared_ptr<void> allocate(std::size_t bytes, const Options& options);

 private:
  Core& core_;
  Lanes& lanes_;
  Access& access_;
  Collectives& collectives_;
  bool told_ = false;  // that the ranks cannot share memory
};

}  // namespace col::group
