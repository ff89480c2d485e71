// What processes use of the GPUs, as NVML, the library of NVIDIA's driver, tells. Without it, nothing is known.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

namespace col::launch {

struct GpuUse {
  std::uint64_t memory_bytes = 0;  // on all GPUs
  std::optional<int> busy;         // percent of the time in which its GPU ran kernels, of any process
};

class GpuMeter {
 public:
  GpuMeter();
  ~GpuMeter();
  GpuMeter(const GpuMeter&) = delete;
  GpuMeter& operator=(const GpuMeter&) = delete;

  void look();
  std::optional<GpuUse> of(pid_t pid) const;

 private:
  struct Library;
  Library* library_ = nullptr;  // null: there is none
  std::map<pid_t, GpuUse> uses_;
};

}  // namespace col::launch
