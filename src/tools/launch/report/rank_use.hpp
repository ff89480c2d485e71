// What a rank has done and used since somebody began to look. Two of them make rates.
#pragma once

#include <cstdint>
#include <optional>

namespace col::launch {

struct RankUse {
  std::uint64_t at_ns = 0;           // by the clock of the rank's host, as RankActivity::since_ns
  std::optional<double> calls = {};  // that have ended; nothing of a rank that does not use col
  double bytes = 0;                  // that they moved
  double waited = 0;                 // seconds, with the wait that goes on
  std::optional<double> cpu = {};    // seconds of processors, of all its threads; nothing if its process is gone
  double queued = 0;                 // seconds for which its main thread was ready to run, and had no processor
  std::uint64_t rss_bytes = 0;
};

}  // namespace col::launch
