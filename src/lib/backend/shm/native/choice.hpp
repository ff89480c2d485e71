// How a collective goes through the slots.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <col/channel.hpp>

#include "backend/shm/native/steps.hpp"
#include "backend/shm/segment/tuning.hpp"
#include "core/kernels/fold.hpp"

namespace col::shm_backend {

// All that the backend does by itself.
std::span<const NativeEntry> native_entries() noexcept;

struct Choice {
  Form form;
  std::size_t chunk_bytes;  // of a step
  core::Stores stores;      // into the output
  bool is_beyond;           // what the caches hold
};
// `bytes`: of the vector, or of the longest block.
Choice choose(const Request& request, std::size_t bytes, int size, const Tuning& tuning);

// The way that a call would take, in words.
std::string how(const Request& request, int size, const Tuning& tuning);

}  // namespace col::shm_backend
