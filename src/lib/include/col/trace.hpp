// A timeline of the calls of all ranks, as a file that ui.perfetto.dev and chrome://tracing open (docs/debugging.md).
//
// Programs mostly need nothing of this: `colrun --trace FILE`, or COL_TRACE=FILE. start_trace() and end_trace() trace a
// part of a program.
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

// From now on, this process keeps when each of its calls begins and ends: of the last 262,144 as many as a file of
// `most_bytes` holds. Does nothing if it does so already. Its memory stays taken (16 MiB at most). Throws resource.
COL_EXPORT void start_trace(std::uint64_t most_bytes = kTraceBytes);
// Ends that, and adds what was kept to the file `path`. Other processes of the job may name the same file: each adds
// its part. A file of another job, or of an earlier call of this process, is replaced. Returns false, and writes
// nothing, if nothing was started. Throws io, resource.
COL_EXPORT bool end_trace(const std::string& path);

// A clock that is ahead of another one, by amounts that were measured at two moments of its own.
struct COL_EXPORT ClockShift {
  std::int64_t first_at_ns = 0, first_ahead_ns = 0;
  std::int64_t last_at_ns = 0, last_ahead_ns = 0;
  std::uint64_t error_ns = 0;  // the most that either is wrong

  // Between the two, and a little beyond, on a straight line.
  std::int64_t ahead_at(std::int64_t at_ns) const noexcept;
};

// For launchers: the calls of several processes, and the file made of them.
class COL_EXPORT Timeline {
 public:
  Timeline();
  ~Timeline();
  Timeline(Timeline&& other) noexcept;
  Timeline& operator=(Timeline&& other) noexcept;

  // Adds what a process of this host has kept in a file (COL_TRACE_DIRECTORY). Throws io if it cannot be read, and
  // mismatch if it is no such file.
  void add_file(const std::string& path);
  // Turns all times into those of the clock that this one is ahead of: CLOCK_MONOTONIC of another host.
  void shift(const ClockShift& clock);
  // All that was added, for another host, in parts of about `most_bytes`.
  std::vector<std::string> pack(std::size_t most_bytes) const;
  // Adds a part of another host. Throws mismatch if it is none.
  void add_packed(std::string_view packed);

  std::size_t events() const noexcept;
  // The file, as text in JSON. If it would have more than `most_bytes`, what is oldest is left out.
  std::string json(std::string_view job_id, std::uint64_t most_bytes = kTraceBytes) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace col
