// What a process keeps of its calls for a timeline: a header, names, and a ring of events. It is a file that the
// launcher reads when the process has ended, or memory of the process alone. Raise kTraceVersion with every change
// here.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/job/page.hpp"
#include "core/trace/names.hpp"

namespace col::core {

inline constexpr std::uint64_t kTraceMagic = 0x656361727463'6f6c;
inline constexpr std::uint32_t kTraceVersion = 1;

// Two clocks at one moment.
struct ClockPair {
  Word ticks;
  Word ns;  // CLOCK_MONOTONIC
};

struct TraceHeader {
  Word magic;
  std::atomic<std::uint32_t> version;
  std::atomic<std::uint32_t> by_counter;  // whether ticks are the processor's; else nanoseconds
  Word capacity;                          // events; a multiple of kTraceChunk
  Word pid;
  Word real_ns;  // since the epoch, at `first`
  ClockPair first, last;
  AtomicText<64> host;
  alignas(64) Word claimed;  // how many events were given to writers, ever
  // Names by number; empty: none.
  alignas(64) std::array<AtomicText<48>, Names::kMost> names;
};

// Writers take so many at a time.
inline constexpr std::uint64_t kTraceChunk = 16;

enum class TraceKind : std::uint8_t { none, call, started, step };

// One cache line.
struct alignas(64) TraceEvent {
  Word begin, end;            // ticks
  Word call;                  // sequence above kind above operation
  Word partner_and_tag;       // of a step: its peer (global rank), and its round
  Word elements;              // as of the flight recorder; of a step: kind above bytes
  Word rank_and_names;        // global rank above group above algorithm
  Word number_and_reduction;  // of a message: its number between the two ranks and by tag; of a step: which one
  Word written;               // its number + 1, once all above is there
};
static_assert(sizeof(TraceEvent) == 64);

}  // namespace col::core
