// Memory that a channel keeps between calls, because allocating megabytes costs more than filling them.
#pragma once

#include <cstddef>
#include <memory>

namespace col::gloo_backend {

class Scratch {
 public:
  // At least `bytes` bytes of unspecified content, aligned for every element type; valid until the next call.
  std::byte* get(std::size_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();
      capacity_ = 0;
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace col::gloo_backend
