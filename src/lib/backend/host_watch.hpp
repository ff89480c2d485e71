// Channels that find out that a host is lost, though nothing ends there: it is cut off, or its processes stand still.
#pragma once

#include <exception>

#include "core/export/module_export.hpp"

namespace col::backend {

// An extension for these.
class COL_MODULE_EXPORT HostWatchExtension {
 public:
  virtual ~HostWatchExtension() = default;
  // Why a host of the group is lost: an Error. Null: none is known to be. Any thread may call it.
  virtual std::exception_ptr lost_host() = 0;
};

}  // namespace col::backend
