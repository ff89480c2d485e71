// Channels that hold posted messages back until somebody waits.
#pragma once

#include <optional>

#include <col/backend.hpp>

#include "core/export/module_export.hpp"

namespace col::backend {

// An extension for them: test() and wait() start what has been posted. The rules of Channel hold for it.
class COL_MODULE_EXPORT HoldingExtension {
 public:
  virtual ~HoldingExtension() = default;
  // As Channel::test(), but what is held back stays so, except for what hand_over() has said: nothing for such a
  // message.
  virtual std::optional<int> look(Ticket ticket) = 0;
  // All that has been posted by now begins together, in the next look() that finds the library idle. What is posted
  // later stays back.
  virtual void hand_over() = 0;
  // True if what is held back cannot begin before a capture of a stream ends, which may be the calling thread's own.
  virtual bool awaits_capture() const { return false; }
};

}  // namespace col::backend
