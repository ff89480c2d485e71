// The devices that ranks want to use, and whether two of them want the same one.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/export/module_export.hpp"

namespace col::backend {

// A device that a rank wants to use, as it tells the others.
struct Seat {
  int rank = 0;
  std::string device = {};     // equal for the same device: its bus address and the boot id of the host
  std::string why_alone = {};  // why this rank cannot share the device with another rank; empty if it can
};
// Two ranks on one device.
struct SharedDevice {
  int first = 0, second = 0;
  std::string device = {};
  std::string problem = {};  // why one of the ranks cannot share it: "on rank 2, …"; empty if all can
};
// The first two of `seats` that are on one device; nothing if each has its own. All ranks that know the same seats get
// the same answer.
COL_MODULE_EXPORT std::optional<SharedDevice> find_shared_device(std::span<const Seat> seats);

}  // namespace col::backend
