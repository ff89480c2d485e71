// The epochs of a group.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "group/call/checks.hpp"
#include "group/state.hpp"

namespace col {

Group Group::renew(const Renewal& renewal) {
  const group::Turn turn(state().access(), timeout());
  return state().renew(renewal);
}

std::uint64_t Group::epoch() const {
  return state().lineage().epoch->record->epoch;
}

std::vector<int> Group::newcomers() const {
  return state().own_epoch("newcomers").record->newcomers();
}

std::vector<int> Group::lost() const {
  std::vector<int> numbers;
  for (const group::LostSeat& seat : state().own_epoch("lost").record->lost) numbers.push_back(seat.number);
  return numbers;
}

int Group::source() const {
  return state().own_epoch("source").record->source();
}

std::uint64_t Group::progress(int rank) const {
  const group::EpochRecord& record = *state().own_epoch("progress").record;
  group::check_peer(rank, "progress: rank", state().core().shape());
  return record.members[static_cast<std::size_t>(rank)].progress;
}

}  // namespace col
