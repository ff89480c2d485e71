// What ranks do each second, from two looks at them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "launch/report/job_story.hpp"

namespace col::launch {

// The processes' use of the GPUs, as NVML, the library of NVIDIA's driver, tells. Without it, nothing is known.
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

// Of one rank, between two looks. What is not known is nothing.
struct RankRates {
  std::optional<double> calls = {};    // a second
  std::optional<double> waiting = {};  // share of the time in calls that wait
  std::optional<double> bytes = {};    // a second: what its calls move
  std::optional<double> cpu = {};      // processors
  // share of the time for which its main thread was ready to run, and had no processor
  std::optional<double> queued = {};
  std::optional<std::uint64_t> rss_bytes = {};
  std::optional<GpuUse> gpu = {};
  std::optional<double> age = {};  // seconds since its host has last answered, if it should have answered since
};

class RateMeter {
 public:
  // Before the ranks of a frame are asked for.
  void begin_frame() { gpus_.look(); }
  // Since an earlier look, which is long enough ago. `is_here`: it is a process of this host.
  RankRates rates_of(const RankStory& rank, bool is_here);
  // Other processes have taken the place of the ranks.
  void forget() { seen_.clear(); }

 private:
  struct Seen {
    RankUse use;
    RankRates rates;
  };

  std::map<int, Seen> seen_;  // by rank
  GpuMeter gpus_;
};

}  // namespace col::launch
