// A timeline of the calls of all ranks, as a file that ui.perfetto.dev and chrome://tracing open (docs/debugging.md).
//
// Most programs need no call of this: `colrun --trace FILE` and COL_TRACE=FILE trace all of a job. start_trace() and
// end_trace() trace a part of a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <col/export.hpp>

namespace col {

inline constexpr std::uint64_t kTraceBytes = std::uint64_t{256} << 20;

// From now on, this process keeps when each of its calls begins and ends. It keeps the latest calls: as many as fit in
// a file of `most_bytes`, and 262,144 at most. Does nothing if tracing is on. Its memory (16 MiB at most) is not freed.
// Throws resource.
COL_EXPORT void start_trace(std::uint64_t most_bytes = kTraceBytes);
// Ends tracing, and adds the kept calls to the file `path`. Other processes of the job may name the same file: each
// adds its part. A file of another job, or of an earlier call of this process, is replaced. Returns false, and writes
// nothing, if nothing was started. Throws io, resource.
COL_EXPORT bool end_trace(const std::string& path);

// How far one clock is ahead of another one (negative: behind), measured at two moments of the first clock.
struct COL_EXPORT ClockShift {
  std::int64_t first_at_ns = 0, first_ahead_ns = 0;
  std::int64_t last_at_ns = 0, last_ahead_ns = 0;
  std::uint64_t error_ns = 0;  // the largest error of the two measurements

  // The amount at another moment, on the straight line through the two measurements.
  std::int64_t ahead_at(std::int64_t at_ns) const noexcept;
};

// For launchers: collects the calls of several processes, and makes one file of them.
class COL_EXPORT Timeline {
 public:
  Timeline();
  ~Timeline();
  Timeline(Timeline&& other) noexcept;
  Timeline& operator=(Timeline&& other) noexcept;

  // Adds what a process of this host has kept in a file (COL_TRACE_DIRECTORY). Throws io if it cannot be read, and
  // mismatch if it is no such file.
  void add_file(const std::string& path);
  // Turns all times into those of the other clock, CLOCK_MONOTONIC of another host: subtracts clock.ahead_at().
  void shift(const ClockShift& clock);
  // Everything that was added, as binary strings of about `most_bytes` each, for add_packed() on another host.
  std::vector<std::string> pack(std::size_t most_bytes) const;
  // Adds a string that pack() made on another host. Throws mismatch if it is no such string.
  void add_packed(std::string_view packed);

  std::size_t events() const noexcept;
  // The file, as text in JSON. If it would have more than `most_bytes`, the oldest calls are left out.
  std::string json(std::string_view job_id, std::uint64_t most_bytes = kTraceBytes) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace col
