// Calls whose buffers are in another kind of memory than the channel moves: they work on copies.
#pragma once

#include <memory>
#include <vector>

#include <col/request.hpp>

#include "group/flight/core.hpp"
#include "group/flight/lanes.hpp"
#include "group/flight/pending.hpp"
#include "group/staging/staging.hpp"

namespace col::group {

// Requires: the group's lock is held. It must outlive the operations that use its copies.
class Stager {
 public:
  Stager(const Core& core, const Lanes& lanes) : core_(core), lanes_(lanes) {}

  // Puts copies in the place of buffers; null where none is needed. Throws what Staging::replace() throws, and
  // unavailable if the stream is being captured.
  std::unique_ptr<Staging> stage(Request& request, Device wanted);
  std::unique_ptr<Staging> stage(std::vector<Leg>& legs, Stream stream);

 private:
  std::unique_ptr<Staging> keep_if_used(std::unique_ptr<Staging> staging, Stream stream);

  const Core& core_;
  const Lanes& lanes_;
  StagingPool pool_;
  bool told_ = false;  // that memory is copied
};

}  // namespace col::group
