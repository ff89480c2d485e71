// From what a machine takes to what a group does. Pure functions: tests try any costs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "backend/shm/segment/tuning.hpp"

namespace col::shm_backend {

struct GroupShape {
  int size = 1;
  int processors = 1;          // that the ranks have together
  std::size_t small_slot = 0;  // as the segment has them
  std::size_t largest_slot = 0;
  std::size_t cache_bytes = 0;  // of the second level, of one processor
  std::size_t last_caches = 0;  // bytes of the last level, of all processors; 0: not known
};

// Without costs, values that are nowhere bad: all goes through slots, of the smallest size if the caches hold the call.
Tuning decide(const GroupShape& shape, const std::optional<Costs>& costs, KernelCopies copies);

// For a group that is made in the memory of another one, by what that one knows.
Tuning decide_as(const Tuning& parent, const GroupShape& shape);

// For the log and Group::explain(): "slots of 256 KiB, …".
std::string in_words(const Tuning& tuning);

}  // namespace col::shm_backend
