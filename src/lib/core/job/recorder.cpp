// A rank's flight recorder, as others read it (core/job/call_ring.hpp), and what its entries name by number.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <col/job.hpp>

#include "core/job/call_ring.hpp"
#include "core/job/page.hpp"
#include "core/job/record_words.hpp"

namespace col {

namespace {

// An entry, and its number in the ring.
struct Entry {
  std::uint64_t number, word, at_ns, took_ns;
  CallDetails details;
};

const core::RingEntry& entry_at(const core::RecorderLayout& ring, std::uint64_t number) noexcept {
  return ring.calls[number % core::CallRing::kPlaces];
}

CallDetails details_of(const core::RingEntry& entry, std::uint64_t word) noexcept {
  const std::uint64_t partner_and_tag = entry.partner_and_tag.load(std::memory_order_acquire);
  const bool is_message = core::is_message(core::op_of(word));
  CallDetails details = core::unpack(entry.elements.load(std::memory_order_acquire), partner_and_tag,
                                     is_message ? 0 : core::lower_half(partner_and_tag));
  if (!is_message) details.tag = -1;
  return details;
}

// How many entries are of operations that are over, or were started: all, but for a call that is under way, and what
// other threads have added since that began. A call that stays under way for longer is left behind.
std::uint64_t settled(const core::RecorderLayout& ring) noexcept {
  constexpr std::uint64_t kLeftBehind = 8;
  const std::uint64_t entries = ring.entries.load(std::memory_order_acquire);
  for (std::uint64_t number = entries - std::min(entries, kLeftBehind); number < entries; ++number) {
    const std::uint64_t word = entry_at(ring, number).call.load(std::memory_order_acquire);
    if (core::state_of(word) == core::EntryState::running) return number;
  }
  return entries;
}

// The entries from `first` on, oldest first.
std::vector<Entry> entries_of(const core::RecorderLayout& ring, std::uint64_t first, std::uint64_t end) {
  std::vector<Entry> entries;
  entries.reserve(end - first);
  for (std::uint64_t number = first; number < end; ++number) {
    const core::RingEntry& entry = entry_at(ring, number);
    const std::uint64_t word = entry.call.load(std::memory_order_acquire);
    const core::EntryState state = core::state_of(word);
    if (state == core::EntryState::none || state == core::EntryState::running) continue;
    entries.push_back({number, word, entry.at_ns.load(std::memory_order_acquire),
                       core::is_timed(state) ? entry.took_ns.load(std::memory_order_acquire) : 0,
                       details_of(entry, word)});
  }
  const std::uint64_t by_now = ring.entries.load(std::memory_order_acquire);
  std::erase_if(entries, [&](const Entry& entry) { return entry.number + core::CallRing::kReadable < by_now; });
  return entries;
}

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
    recorder_->tokens_ever[group].store(0, std::memory_order_release);  // whose name it was
    // From now on nothing is known of the calls of the group that had the number before.
    for (core::RingEntry& entry : recorder_->calls) {
      const std::uint64_t call = entry.call.load(std::memory_order_relaxed);
      if (core::group_of(call) == group) entry.call.store(core::without_group(call), std::memory_order_release);
    }
    recorder_->names[group].store(name);
    recorder_->last[group].store(0, std::memory_order_release);
    recorder_->tokens_ever[group].store(std::max(token, kClaimed + 1), std::memory_order_release);
    recorder_->tokens[group].store(std::max(token, kClaimed + 1), std::memory_order_release);
    return static_cast<int>(group);
  }
  return 0;
}

void RankRecord::leave_group(int group) noexcept {
  if (group > 0) recorder_->tokens[static_cast<std::size_t>(group)].store(0, std::memory_order_release);
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
  const std::uint64_t noted = settled(*recorder_);
  const std::uint64_t first = noted - std::min<std::uint64_t>(noted, std::min(most_calls, kRecordedCalls));
  for (const Entry& entry : entries_of(*recorder_, first, noted))
    history.calls.push_back({.op = core::op_of(entry.word),
                             .ended = core::has_ended(core::state_of(entry.word)),
                             .group = names[core::group_of(entry.word)],
                             .sequence = core::sequence_of(entry.word),
                             .at_ns = entry.at_ns,
                             .details = entry.details,
                             .names = names_of(entry.details)});
  return history;
}

RankTimes RankRecord::times_since(std::uint64_t noted, bool with_calls) const {
  RankTimes found;
  found.waited_ns = recorder_->waited_ns.load(std::memory_order_acquire);
  found.noted = settled(*recorder_);
  if (!with_calls || noted >= found.noted) return found;
  const std::uint64_t first = std::max(noted, found.noted - std::min<std::uint64_t>(found.noted, kRecordedCalls));
  for (const Entry& entry : entries_of(*recorder_, first, found.noted)) {
    const std::size_t group = core::group_of(entry.word);
    found.calls.push_back({.token = group == 0 ? 0 : recorder_->tokens_ever[group].load(std::memory_order_acquire),
                           .sequence = core::sequence_of(entry.word),
                           .op = core::op_of(entry.word),
                           .ended = core::has_ended(core::state_of(entry.word)),
                           .took_ns = entry.took_ns,
                           .details = entry.details});
  }
  return found;
}

// The last call that is later than the record's words: the number after that of its entry. 0: there is none.
std::uint64_t RankRecord::later_entry() const noexcept {
  const std::uint64_t older = layout_->entries.load(std::memory_order_acquire);
  const std::uint64_t entries = recorder_->entries.load(std::memory_order_acquire);
  for (std::uint64_t next = entries; next > older && next + core::CallRing::kReadable > entries; --next) {
    const core::EntryState state = core::state_of(entry_at(*recorder_, next - 1).call.load(std::memory_order_acquire));
    // Others are of operations that the record tells of, or that were under way beside it.
    if (core::is_under_way(state) || core::is_brief(state)) return next;
  }
  return 0;
}

// Returns false if that call's entry has changed meanwhile.
bool RankRecord::read_ring(RankActivity& activity) const {
  const std::uint64_t next = later_entry();
  if (next == 0) return true;
  const core::RingEntry& entry = entry_at(*recorder_, next - 1);
  const std::uint64_t word = entry.call.load(std::memory_order_acquire);
  const core::EntryState state = core::state_of(word);
  activity.state = core::is_under_way(state) ? RankActivity::State::running : RankActivity::State::joined;
  activity.sequence = core::sequence_of(word);
  activity.op = to_string(core::op_of(word));
  activity.group = recorder_->names[core::group_of(word)].load();
  activity.details = details_of(entry, word);
  // One that runs has no time: the call before it has ended a moment ago, or the rank comes from its own code.
  const core::RingEntry& timed =
      state == core::EntryState::running && next > 1 ? entry_at(*recorder_, next - 2) : entry;
  activity.since_ns = std::max(activity.since_ns, timed.at_ns.load(std::memory_order_acquire));
  activity.fingerprint = 0;
  activity.progress = {};
  activity.place.clear();
  if (entry.call.load(std::memory_order_acquire) != word) return false;
  const std::uint64_t by_now = recorder_->entries.load(std::memory_order_acquire);
  return by_now >= next && by_now < next + core::CallRing::kReadable;  // else it was taken back, or has gone
}

// The record's words are to say more of what this rank does.
void RankRecord::take_over_ring() noexcept {
  if (const std::uint64_t next = later_entry(); next != 0) {
    const core::RingEntry& entry = entry_at(*recorder_, next - 1);
    const std::uint64_t word = entry.call.load(std::memory_order_relaxed);
    layout_->sequence.store(core::sequence_of(word), std::memory_order_release);
    layout_->fingerprint.store(0, std::memory_order_release);
    layout_->group.copy(recorder_->names[core::group_of(word)]);
    layout_->op.store(to_string(core::op_of(word)));
    layout_->place.clear();
    store_details(details_of(entry, word));
  }
  layout_->entries.store(recorder_->entries.load(std::memory_order_relaxed), std::memory_order_release);
}

std::vector<RecordedGroup> RankRecord::groups_ever() const {
  std::vector<RecordedGroup> groups;
  for (std::size_t group = 1; group < core::RecorderLayout::kGroups; ++group) {
    const std::uint64_t token = recorder_->tokens_ever[group].load(std::memory_order_acquire);
    std::string name = recorder_->names[group].load();
    const std::uint64_t last = recorder_->last[group].load(std::memory_order_acquire);
    if (token > 1 && recorder_->tokens_ever[group].load(std::memory_order_acquire) == token)
      groups.push_back({std::move(name), token, last});
  }
  return groups;
}

// For a process that follows another one.
void RankRecord::clear_history() noexcept {
  for (core::Word& token : recorder_->tokens) token.store(0, std::memory_order_release);
  for (core::Word& token : recorder_->tokens_ever) token.store(0, std::memory_order_release);
  recorder_->waited_ns.store(0, std::memory_order_release);
  for (core::NotedLabel& label : recorder_->labels) label.number.store(0, std::memory_order_release);
  for (auto& name : recorder_->algorithms) name.store({});
  recorder_->entries.store(0, std::memory_order_release);
}

}  // namespace col
