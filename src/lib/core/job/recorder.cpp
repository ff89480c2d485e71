// A rank's flight recorder. A call is four words, and then the number of calls. A reader takes that number first, and
// again at the end: entries that may have been written over meanwhile do not count.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "core/job/fast_record.hpp"
#include "core/job/page.hpp"
#include "core/job/record_words.hpp"

namespace col {

namespace {

using core::is_message;
using core::kEndedBits;
using core::kGroupBits;
using core::kOpBits;

}  // namespace

int RankRecord::enter_group(std::string_view name, std::uint64_t token) noexcept {
  constexpr std::uint64_t kClaimed = 1;
  // In turn: the calls of a group that is gone keep their name for as long as possible.
  constexpr std::size_t kNumbers = core::RecorderLayout::kGroups - 1;
  const std::size_t first = recorder_->entered.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kNumbers; ++i) {
    const std::size_t group = 1 + (first + i) % kNumbers;
    std::uint64_t free = 0;
    if (!recorder_->tokens[group].compare_exchange_strong(free, kClaimed, std::memory_order_acquire)) continue;
    recorder_->times.tokens[group].store(0, std::memory_order_release);  // whose name it was
    // From now on nothing is known of the calls of the group that had the number before.
    for (core::NotedCall& noted_call : recorder_->calls) {
      const std::uint64_t call = noted_call.call.load(std::memory_order_relaxed);
      if (core::group_of(call) == group) noted_call.call.store(core::without_group(call), std::memory_order_release);
    }
    recorder_->names[group].store(name);
    recorder_->last[group].store(0, std::memory_order_release);
    recorder_->times.tokens[group].store(std::max(token, kClaimed + 1), std::memory_order_release);
    recorder_->tokens[group].store(std::max(token, kClaimed + 1), std::memory_order_release);
    return static_cast<int>(group);
  }
  return 0;
}

void RankRecord::leave_group(int group) noexcept {
  if (group > 0) recorder_->tokens[static_cast<std::size_t>(group)].store(0, std::memory_order_release);
}

RankRecord::Noted::Noted(Collective op, const CallDetails& details) noexcept
    : Noted(core::FastRecord::noted(op, details)) {}

std::uint64_t RankRecord::note(int group, std::uint64_t sequence, const Noted& noted, bool ended) noexcept {
  return core::FastRecord::note(*this, group, sequence, noted, ended);
}

std::uint8_t RankRecord::algorithm(std::string_view name) noexcept {
  if (name.empty()) return 0;
  for (std::size_t i = 1; i < recorder_->algorithms.size(); ++i) {
    core::AtomicText<32>& place = recorder_->algorithms[i];
    if (place.is_empty()) place.store(name);  // two threads may do so at once: then one name has the other's number
    if (place.holds(name)) return static_cast<std::uint8_t>(i);
  }
  return 0;
}

std::uint16_t RankRecord::label(std::string_view text, std::uint16_t number) noexcept {
  if (text.empty() || number == 0) return 0;
  core::NotedLabel& place = recorder_->labels[number % core::RecorderLayout::kLabels];
  if (place.number.load(std::memory_order_relaxed) == number) return number;
  place.number.store(0, std::memory_order_release);  // for readers, while it is neither
  place.text.store(text);
  place.number.store(number, std::memory_order_release);
  return number;
}

CallNames RankRecord::names_of(const CallDetails& details) const {
  CallNames names;
  if (details.reduction == kOtherReduction)
    names.reduction = "other";
  else if (details.reduction > 0 && details.reduction <= kReduceOpCount)
    names.reduction = to_string(static_cast<ReduceOp>(details.reduction - 1));
  // A damaged page has other numbers.
  if (details.algorithm > 0 && details.algorithm < core::RecorderLayout::kAlgorithms)
    names.algorithm = recorder_->algorithms[details.algorithm].load();
  if (details.label == 0) return names;
  const core::NotedLabel& label = recorder_->labels[details.label % core::RecorderLayout::kLabels];
  if (label.number.load(std::memory_order_acquire) != details.label) return names;
  std::string text = label.text.load();
  // Unless another one has taken its place meanwhile.
  if (label.number.load(std::memory_order_acquire) == details.label) names.label = std::move(text);
  return names;
}

RankHistory RankRecord::history(std::size_t most_calls) const {
  RankHistory history;
  std::array<std::string, core::RecorderLayout::kGroups> names;
  for (std::size_t group = 1; group < names.size(); ++group) {
    const std::uint64_t token = recorder_->tokens[group].load(std::memory_order_acquire);
    names[group] = recorder_->names[group].load();  // also of a group that is gone
    const std::uint64_t last = recorder_->last[group].load(std::memory_order_acquire);
    // Unless another group has got the number meanwhile.
    const bool is_same = recorder_->tokens[group].load(std::memory_order_acquire) == token;
    if (token > 1 && is_same) history.groups.push_back({names[group], token, last});
  }
  const std::uint64_t noted = recorder_->noted.load(std::memory_order_acquire);
  const std::uint64_t first = noted - std::min<std::uint64_t>(noted, std::min(most_calls, kRecordedCalls));
  for (std::uint64_t number = first; number < noted; ++number) {
    const core::NotedCall& noted_call = recorder_->calls[number % kRecordedCalls];
    RecordedCall call;
    call.at_ns = noted_call.at_ns.load(std::memory_order_acquire);
    const std::uint64_t word = noted_call.call.load(std::memory_order_acquire);
    const std::uint64_t partner_and_tag = noted_call.partner_and_tag.load(std::memory_order_acquire);
    const std::uint64_t elements = noted_call.elements.load(std::memory_order_acquire);
    call.ended = (word & 1) != 0;
    call.group = names[core::group_of(word)];
    const auto op = static_cast<Collective>(word >> (kEndedBits + kGroupBits) & ((1U << kOpBits) - 1));
    call.op = std::min(op, Collective::recv);  // a damaged page has others
    call.sequence = word >> (kEndedBits + kGroupBits + kOpBits);
    call.details = core::unpack(elements, partner_and_tag, is_message(call.op) ? 0 : core::lower_half(partner_and_tag));
    if (!is_message(call.op)) call.details.tag = -1;
    call.names = names_of(call.details);
    history.calls.push_back(std::move(call));
  }
  const std::uint64_t by_now = recorder_->noted.load(std::memory_order_acquire);
  // The one that comes next may be half written.
  const std::uint64_t kept = by_now + 1 - std::min<std::uint64_t>(by_now + 1, kRecordedCalls);
  const std::uint64_t spoilt = kept > first ? std::min<std::uint64_t>(kept - first, history.calls.size()) : 0;
  history.calls.erase(history.calls.begin(), history.calls.begin() + static_cast<std::ptrdiff_t>(spoilt));
  return history;
}

void RankRecord::note_wait(std::uint64_t began_ns) noexcept {
  core::TimesLayout& times = recorder_->times;
  const std::uint64_t now = core::clock_ns();
  const std::uint64_t took = now > began_ns ? now - began_ns : 1;
  // relaxed: this process's own words. The release of the number of calls follows, in note().
  const std::uint64_t number = recorder_->noted.load(std::memory_order_relaxed);
  core::TimesLayout::Entry& entry = times.calls[number % kRecordedCalls];
  entry.took_ns.store(took, std::memory_order_release);
  entry.number.store(number + 1, std::memory_order_release);
  times.waited_ns.store(times.waited_ns.load(std::memory_order_relaxed) + took, std::memory_order_release);
}

RankTimes RankRecord::times_since(std::uint64_t noted, bool with_calls) const {
  const core::TimesLayout& times = recorder_->times;
  RankTimes found;
  found.waited_ns = times.waited_ns.load(std::memory_order_acquire);
  found.noted = recorder_->noted.load(std::memory_order_acquire);
  if (!with_calls || noted >= found.noted) return found;
  const std::uint64_t first = std::max(noted, found.noted - std::min<std::uint64_t>(found.noted, kRecordedCalls));
  found.calls.reserve(found.noted - first);
  for (std::uint64_t number = first; number < found.noted; ++number) {
    const core::NotedCall& noted_call = recorder_->calls[number % kRecordedCalls];
    const core::TimesLayout::Entry& entry = times.calls[number % kRecordedCalls];
    TimedCall call;
    const std::uint64_t word = noted_call.call.load(std::memory_order_acquire);
    const std::uint64_t partner_and_tag = noted_call.partner_and_tag.load(std::memory_order_acquire);
    const std::uint64_t elements = noted_call.elements.load(std::memory_order_acquire);
    if (entry.number.load(std::memory_order_acquire) == number + 1)
      call.took_ns = entry.took_ns.load(std::memory_order_acquire);
    call.ended = (word & 1) != 0;
    const std::size_t group = core::group_of(word);
    call.token = group == 0 ? 0 : times.tokens[group].load(std::memory_order_acquire);
    const auto op = static_cast<Collective>(word >> (kEndedBits + kGroupBits) & ((1U << kOpBits) - 1));
    call.op = std::min(op, Collective::recv);  // a damaged page has others
    call.sequence = word >> (kEndedBits + kGroupBits + kOpBits);
    call.details = core::unpack(elements, partner_and_tag, is_message(call.op) ? 0 : core::lower_half(partner_and_tag));
    if (!is_message(call.op)) call.details.tag = -1;
    found.calls.push_back(call);
  }
  const std::uint64_t by_now = recorder_->noted.load(std::memory_order_acquire);
  // As in history().
  const std::uint64_t kept = by_now + 1 - std::min<std::uint64_t>(by_now + 1, kRecordedCalls);
  const std::uint64_t spoilt = kept > first ? std::min<std::uint64_t>(kept - first, found.calls.size()) : 0;
  found.calls.erase(found.calls.begin(), found.calls.begin() + static_cast<std::ptrdiff_t>(spoilt));
  return found;
}

std::vector<RecordedGroup> RankRecord::groups_ever() const {
  std::vector<RecordedGroup> groups;
  for (std::size_t group = 1; group < core::RecorderLayout::kGroups; ++group) {
    const std::uint64_t token = recorder_->times.tokens[group].load(std::memory_order_acquire);
    std::string name = recorder_->names[group].load();
    const std::uint64_t last = recorder_->last[group].load(std::memory_order_acquire);
    if (token > 1 && recorder_->times.tokens[group].load(std::memory_order_acquire) == token)
      groups.push_back({std::move(name), token, last});
  }
  return groups;
}

// For a process that follows another one.
void RankRecord::clear_history() noexcept {
  for (core::Word& token : recorder_->tokens) token.store(0, std::memory_order_release);
  for (core::Word& token : recorder_->times.tokens) token.store(0, std::memory_order_release);
  for (core::TimesLayout::Entry& entry : recorder_->times.calls) entry.number.store(0, std::memory_order_release);
  recorder_->times.waited_ns.store(0, std::memory_order_release);
  for (core::NotedLabel& label : recorder_->labels) label.number.store(0, std::memory_order_release);
  for (auto& name : recorder_->algorithms) name.store({});
  recorder_->noted.store(0, std::memory_order_release);
}

}  // namespace col
