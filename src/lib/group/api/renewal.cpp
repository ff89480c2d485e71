// The epochs of a group.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/log.hpp"
#include "group/call/checks.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/join/epoch_keys.hpp"
#include "group/state.hpp"

namespace col {

Group Group::renew(const Renewal& renewal) {
  const group::Turn turn(state().access(), timeout());
  return state().renew(renewal);
}

// The first rank looks, and tells the others.
bool Group::renewal_wanted() {
  const group::Epoch& epoch = state().own_epoch("renewal_wanted");
  int waiting = 0;
  if (rank() == 0) {
    try {
      WaitContext wait(Deadline::after(group::kStoreTime));
      waiting = group::EpochKeys(epoch.place, epoch.first).anybody_waits(wait) ? 1 : 0;
    } catch (const Error& error) {  // who waits is seen by a later call
      core::log::debug("group '{}': cannot look who waits to join: {}", epoch.group, error.what());
    }
  }
  broadcast_object(waiting);
  return waiting > 0;
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
