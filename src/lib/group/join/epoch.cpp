#include "group/join/epoch.hpp"

#include <cstddef>
#include <utility>

#include "core/hash.hpp"

namespace col::group {

std::shared_ptr<Epoch> first_epoch_of(const GroupSpec& wanted, bool names_wire, std::uint64_t token,
                                      std::shared_ptr<Store> place) {
  std::vector<Seat> seats;
  for (int rank = 0; rank < wanted.world_size; ++rank)
    seats.push_back({.incarnation = core::Hash().add(token).add(rank).value()});
  auto epoch = std::make_shared<Epoch>();
  epoch->group = wanted.name;
  epoch->self = seats[static_cast<std::size_t>(wanted.rank)].incarnation;
  epoch->record = epoch->first = std::make_shared<const EpochRecord>(first_epoch(std::move(seats), token));
  epoch->place = std::move(place);
  epoch->wanted = wanted;
  epoch->names_wire = names_wire;
  return epoch;
}

std::shared_ptr<Epoch> next_epoch_of(const Epoch& before, RecordPtr record) {
  auto epoch = std::make_shared<Epoch>();
  epoch->group = before.group;
  epoch->self = before.self;
  epoch->record = std::move(record);
  epoch->place = before.place;
  epoch->wanted = before.wanted;
  epoch->names_wire = before.names_wire;
  epoch->settled = before.settled;
  return epoch;
}

}  // namespace col::group
