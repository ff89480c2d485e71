// The timeline of this process, while somebody wants one: see layout.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <col/job.hpp>

#include "core/trace/clock.hpp"
#include "core/trace/layout.hpp"

namespace col::core {

// What TraceEvent says, in parts.
struct TracedCall {
  TraceKind kind = TraceKind::call;
  std::uint64_t begin = 0;  // ticks
  Collective op = {};
  std::uint64_t sequence = 0;
  int rank = 0;  // global
  std::uint16_t group = 0, algorithm = 0;
  std::uint64_t number = 0;  // of a message
  CallDetails details = {};
};

struct TracedStep {
  std::uint64_t begin = 0;
  int kind = 0;  // Step::Kind
  int peer = -1;
  std::size_t round = 0;
  std::uint64_t bytes = 0;
  std::uint64_t index = 0;  // of all steps of this call
};

class Trace {
 public:
  // Where one writer writes: it takes kTraceChunk events at a time. Not thread safe.
  struct Cursor {
    const Trace* of = nullptr;
    std::uint64_t next = 0, end = 0;
  };

  // Null while nobody wants it: one load.
  static Trace* on() noexcept { return on_.load(std::memory_order_acquire); }

  // From the environment, once: COL_TRACE_DIRECTORY, else COL_TRACE. `rank` and `ranks`: of the job. A trace that is
  // impossible is warned about, and not made: it must not end a job.
  static void start_from_environment(int rank, int ranks, const std::string& job) noexcept;
  // Tells the parts of one file from those of another: the job, and how many traces this process has written.
  static std::string next_file_key();
  // In memory, or in a file. Throws resource, io.
  static void start(std::uint64_t most_events, const std::string& file = {});
  // Ends it. What it has stays readable: calls under way may still write. Null if nobody has wanted it.
  static Trace* stop() noexcept;

  // How many events of each of `ranks` processes make a file of that size.
  static std::uint64_t events_in(std::uint64_t bytes, int ranks) noexcept;

  std::uint64_t ticks() const noexcept { return TraceClock::ticks(by_counter_); }
  // A call has ended now, or one of its steps.
  void add(Cursor& cursor, const TracedCall& call) noexcept;
  void add_step(Cursor& cursor, const TracedCall& call, const TracedStep& step) noexcept;

  const TraceHeader& header() const noexcept { return *header_; }
  const TraceEvent* events() const noexcept { return events_; }

 private:
  Trace(std::uint64_t capacity, const std::string& file);
  TraceEvent* next(Cursor& cursor) noexcept;
  void note_time() noexcept;

  static std::atomic<Trace*> on_;

  TraceHeader* header_ = nullptr;
  TraceEvent* events_ = nullptr;
  std::uint64_t capacity_ = 0;
  bool by_counter_ = false;
};

}  // namespace col::core
