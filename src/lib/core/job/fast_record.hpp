// What every small call writes into its rank's record: RankRecord's functions of the same names, inline. A call of a
// few bytes takes less than twenty times what one of them takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <col/job.hpp>

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
    record.layout_->since_ns.store(at_ns != 0 ? at_ns : now_ns(), std::memory_order_relaxed);
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
    const std::uint64_t at_ns = now_ns();
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
};

}  // namespace col::core
