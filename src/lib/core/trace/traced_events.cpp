#include "core/trace/traced_events.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/job/record_words.hpp"
#include "core/trace/clock_moment.hpp"

namespace col::core {
namespace {

// Turns ticks of a process into nanoseconds: a straight line through two moments at which both clocks were read.
class TickLine {
 public:
  explicit TickLine(const TraceHeader& header)
      : first_ticks_(header.first.ticks.load(std::memory_order_acquire)),
        first_ns_(header.first.ns.load(std::memory_order_acquire)) {
    if (header.by_counter.load(std::memory_order_acquire) == 0) return;
    // Far apart, so that what lies between the readings of the two clocks does not count.
    constexpr std::uint64_t kFarNs = 50'000'000;
    std::uint64_t ticks = header.last.ticks.load(std::memory_order_acquire);
    std::uint64_t ns = header.last.ns.load(std::memory_order_acquire);
    // A process that ended soon: the processors' counter is the same for this process.
    if (ns - first_ns_ < kFarNs) {
      const ClockMoment now = ClockMoment::now(true);
      ticks = now.ticks;
      ns = now.ns;
    }
    if (ticks > first_ticks_ && ns > first_ns_)
      ns_per_tick_ = static_cast<double>(ns - first_ns_) / static_cast<double>(ticks - first_ticks_);
  }

  std::int64_t ns(std::uint64_t ticks) const noexcept {
    const auto passed = static_cast<std::int64_t>(ticks - first_ticks_);
    return static_cast<std::int64_t>(first_ns_) + static_cast<std::int64_t>(static_cast<double>(passed) * ns_per_tick_);
  }

 private:
  std::uint64_t first_ticks_, first_ns_;
  double ns_per_tick_ = 1;
};

}  // namespace

std::uint32_t TracedEvents::name(std::string_view text) {
  if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(names.size());
  numbers_.emplace(text, number);
  names.emplace_back(text);
  return number;
}

void add_events(TracedEvents& all, const TraceHeader& header, const TraceEvent* events) {
  const TickLine line(header);
  if (all.real_minus_monotonic_ns == 0)
    all.real_minus_monotonic_ns = static_cast<std::int64_t>(header.real_ns.load(std::memory_order_relaxed) -
                                                            header.first.ns.load(std::memory_order_relaxed));
  std::map<std::uint16_t, std::uint32_t> names;
  const auto name = [&](std::uint64_t number) {
    const auto own = static_cast<std::uint16_t>(number);
    const auto [place, is_new] = names.emplace(own, 0);
    if (is_new && own != 0) place->second = all.name(header.names[own].load());
    return place->second;
  };
  TracedProcess process{.pid = header.pid.load(std::memory_order_relaxed), .host = header.host.load()};
  const std::uint64_t capacity = header.capacity.load(std::memory_order_relaxed);
  for (std::uint64_t i = 0; i < capacity; ++i) {
    const TraceEvent& from = events[i];
    const std::uint64_t written = from.written.load(std::memory_order_acquire);
    if (written == 0) continue;
    TracedEvent event;
    event.begin_ns = line.ns(from.begin.load(std::memory_order_acquire));
    event.end_ns = std::max(event.begin_ns, line.ns(from.end.load(std::memory_order_acquire)));
    const std::uint64_t call = from.call.load(std::memory_order_acquire);
    event.sequence = call >> 16;
    event.kind = static_cast<std::uint8_t>(call >> 8);
    event.op = static_cast<std::uint8_t>(call);
    const std::uint64_t partner_and_tag = from.partner_and_tag.load(std::memory_order_acquire);
    event.partner = static_cast<std::int32_t>(upper_half(partner_and_tag));
    event.tag = static_cast<std::int32_t>(lower_half(partner_and_tag));
    const std::uint64_t elements = from.elements.load(std::memory_order_acquire);
    const std::uint64_t rank_and_names = from.rank_and_names.load(std::memory_order_acquire);
    const std::uint64_t number = from.number_and_reduction.load(std::memory_order_acquire);
    // relaxed: the acquires above keep it after them.
    if (from.written.load(std::memory_order_relaxed) != written) continue;
    const bool is_step = event.kind == static_cast<std::uint8_t>(TraceKind::step);
    event.dtype = static_cast<std::uint8_t>(elements >> 56);
    event.count = elements & (is_step ? (std::uint64_t{1} << 56) - 1 : kMostElements);
    event.label = is_step ? 0 : name(elements >> kCountBits & 0xffff);
    event.rank = static_cast<std::int32_t>(upper_half(rank_and_names));
    event.group = name(lower_half(rank_and_names) >> 16);
    event.algorithm = name(lower_half(rank_and_names) & 0xffff);
    event.number = number >> 8;
    event.reduction = static_cast<std::uint8_t>(number);
    if (process.rank < 0) process.rank = event.rank;
    all.events.push_back(event);
  }
  all.processes.push_back(std::move(process));
}

}  // namespace col::core
