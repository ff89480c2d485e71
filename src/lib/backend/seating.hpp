// Backends for devices of which only some may be in one group together.
#pragma once

#include <string>

#include "core/export/module_export.hpp"

namespace col::backend {

// An extension of BackendFactory, for Seat::device.
class COL_MODULE_EXPORT SeatingExtension {
 public:
  virtual ~SeatingExtension() = default;
  // Names the device, as the backend tells it from others: equal for two that it takes for one. Throws as the functions
  // of DeviceMemory.
  virtual std::string seat(int device) = 0;
};

}  // namespace col::backend
