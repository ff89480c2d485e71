// The GPU of a rank, and an array of floats in its memory: what --device cuda adds to the trainer.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <col/col.hpp>

namespace digits {

// Why there is no GPU here; empty when there is.
std::string why_no_gpu();

// Ranks of a host take its GPUs in turn. Made before the world is joined, so that col chooses NCCL where every rank has
// a GPU of its own; where ranks share one, col copies through the host instead. Destroyed by the thread that made it.
class Gpu {
 public:
  // Throws col::Error.
  explicit Gpu(const col::ContextSpec& rank);
  int device() const noexcept { return device_; }
  std::string text() const;  // "NVIDIA H200 0000:1b:00.0"

 private:
  int device_;
  std::shared_ptr<void> current_;  // while this lives, the device is the thread's
};

class GpuFloats {
 public:
  // Throws col::Error.
  GpuFloats(const Gpu& gpu, std::size_t count);
  col::TensorView view() const;
  // Both block until the copy is done. Requires: as many as there are. Throw col::Error.
  void set(std::span<const float> values);
  void get(std::span<float> values) const;

 private:
  void copy(void* to, const void* from) const;

  int device_;
  std::size_t count_;
  std::shared_ptr<void> memory_;  // shared with nobody: what col gives
};

}  // namespace digits
