// A message that is being sent or received. The transport's mutex guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/gloo/frames.hpp"

namespace col::gloo_backend {

class GuardedBuffer;

struct Operation {
  GuardedBuffer* buffer = nullptr;  // null when it is gone
  char* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t line = 0;
  Content content = 0;
  std::uint64_t order = 0;  // among the receives of this rank
  bool sends = false;
  int peer = -1;                  // of a receive from several: -1 until it is known who sends
  std::vector<int> sources = {};  // of a receive from several
  bool moves = false;             // part of it may have been written or read
  bool is_done = false;
  bool is_ready = false;    // of a receive: it has said so
  bool has_failed = false;  // the message that is next for it is another one, and goes to no later receive

  bool takes_from(int other) const {
    return peer >= 0 ? peer == other : std::find(sources.begin(), sources.end(), other) != sources.end();
  }
};

using OperationPtr = std::shared_ptr<Operation>;  // shared by its buffer, and by the queues that it waits in

}  // namespace col::gloo_backend
