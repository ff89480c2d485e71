// What every small call writes into its rank's record: RankRecord's functions of the same names, inline. A call of a
// few bytes takes less than twenty times what one of them takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "core/job/page.hpp"
#include "core/job/record_words.hpp"

namespace col::core {

struct FastRecord {
  static bool begin_briefly(RankRecord& record, std::string_view group, std::uint64_t sequence,
                            Collective op) noexcept {
    if (record.last_group_.load(std::memory_order_relaxed) != group.data()) return false;
    // release: a reader that sees it sees the record of the last begin().
    record.layout_->brief.store(pack_brief(sequence, op, true), std::memory_order_release);
    return true;
  }

  static void end_briefly(RankRecord& record, std::string_view group, std::uint64_t sequence, Collective op,
                          std::uint64_t at_ns) noexcept {
    // Another thread's call of another group may have come in between: readers see the later one.
    if (record.last_group_.load(std::memory_order_relaxed) != group.data()) return;
    record.layout_->since_ns.store(at_ns != 0 ? at_ns : coarse_clock_ns(), std::memory_order_relaxed);
    record.layout_->brief.store(pack_brief(sequence, op, false), std::memory_order_release);
  }

  static RankRecord::Noted noted(Collective op, const CallDetails& details) noexcept {
    RankRecord::Noted noted;
    noted.op_ = op;
    noted.partner_and_tag_ = pack(static_cast<std::uint32_t>(details.partner),
                                  is_message(op) ? static_cast<std::uint32_t>(details.tag) : pack_method(details));
    noted.elements_ = pack_elements(details);
    return noted;
  }

  static std::uint64_t note(RankRecord& record, int group, std::uint64_t sequence, const RankRecord::Noted& noted,
                            bool ended) noexcept {
    RecorderLayout& recorder = *record.recorder_;
    const std::uint64_t at_ns = coarse_clock_ns();  // the exact time would cost more than the rest
    // relaxed: this process's own word. No locked instruction: it would wait until what the call has stored before can
    // be seen by others.
    const std::uint64_t number = recorder.noted.load(std::memory_order_relaxed);
    NotedCall& call = recorder.calls[number % RankRecord::kRecordedCalls];
    call.at_ns.store(at_ns, std::memory_order_release);
    call.call.store(pack_noted(sequence, noted.op_, group, ended), std::memory_order_release);
    call.partner_and_tag.store(noted.partner_and_tag_, std::memory_order_release);
    call.elements.store(noted.elements_, std::memory_order_release);
    // Operations end in any order, and a message has the number of the collective before it.
    Word& last = recorder.last[static_cast<std::size_t>(group)];
    if (sequence > last.load(std::memory_order_relaxed)) last.store(sequence, std::memory_order_release);
    // Another thread may have noted many calls since the number was read: these must not be lost.
    if (recorder.noted.load(std::memory_order_relaxed) <= number)
      recorder.noted.store(number + 1, std::memory_order_release);
    return at_ns;
  }

  // Leaves a call for other ranks, of which announced() tells as long as no other call has its place. Numbers begin
  // at 1.
  static void announce(RankRecord& record, std::uint64_t stream, std::uint64_t number, std::uint64_t hash) noexcept {
    AnnouncedCall& place = announced_at(*record.recorder_, stream, number);
    // release: who reads one of these words of a later call reads its 0, or its number, after that.
    place.number.store(0, std::memory_order_release);
    place.stream.store(stream, std::memory_order_release);
    place.hash.store(hash, std::memory_order_release);
    place.number.store(number, std::memory_order_release);
  }

  static std::optional<std::uint64_t> announced(const RankRecord& record, std::uint64_t stream,
                                                std::uint64_t number) noexcept {
    const AnnouncedCall& place = announced_at(*record.recorder_, stream, number);
    if (place.number.load(std::memory_order_acquire) != number ||
        place.stream.load(std::memory_order_acquire) != stream)
      return std::nullopt;
    const std::uint64_t hash = place.hash.load(std::memory_order_acquire);
    const bool is_whole = place.number.load(std::memory_order_acquire) == number &&
                          place.stream.load(std::memory_order_acquire) == stream;
    return is_whole ? std::optional(hash) : std::nullopt;
  }

 private:
  // The calls of a stream in a row.
  static AnnouncedCall& announced_at(RecorderLayout& recorder, std::uint64_t stream, std::uint64_t number) noexcept {
    return recorder.announced[(stream + number) % recorder.announced.size()];
  }
};

}  // namespace col::core
