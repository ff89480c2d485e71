// The events of several processes, on one clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <col/trace.hpp>

#include "core/trace/trace.hpp"

namespace col::core {

// An event of layout.hpp, decoded. Plain data: it travels between hosts of a job as it is.
struct TracedEvent {
  std::int64_t begin_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC of the host that makes the file
  std::uint64_t sequence = 0;
  std::uint64_t number = 0;                                 // of a message; of a step: which one of its call
  std::uint64_t count = 0;                                  // of a step: bytes
  std::int32_t rank = 0, partner = -1, tag = -1;            // of a step: tag is its round
  std::uint32_t group = 0, algorithm = 0, label = 0;        // places in TracedEvents::names
  std::uint8_t kind = 0, op = 0, dtype = 0, reduction = 0;  // of a step: dtype is its kind
  std::uint8_t unused[4] = {};
};

struct TracedProcess {
  std::int32_t rank = -1;  // of its first event
  std::uint64_t pid = 0;
  std::string host = {};
  std::uint64_t error_ns = 0;  // of its clock against that of the host that makes the file
};

struct TracedEvents {
  std::vector<std::string> names = {""};
  std::vector<TracedProcess> processes;
  std::vector<TracedEvent> events;
  std::int64_t real_minus_monotonic_ns = 0;  // of this host; 0: not known yet

  std::uint32_t name(std::string_view text);

 private:
  std::map<std::string, std::uint32_t, std::less<>> numbers_ = {{"", 0}};
};

// Adds what one process has kept.
void add_events(TracedEvents& all, const TraceHeader& header, const TraceEvent* events);

// The JSON of the trace event format, without what encloses it: one event a line, with a comma after each but the last.
// Times are since `base_ns`. Leaves out what is oldest, if it would be longer than `most_bytes`.
std::string chrome_events(const TracedEvents& all, std::int64_t base_ns, std::uint64_t most_bytes);
std::string chrome_head(std::string_view job, std::int64_t base_real_ns, const TracedEvents& all);
inline constexpr std::string_view kChromeTail = "\n]}\n";
std::string json_text(std::string_view text);  // with its quotes

}  // namespace col::core
