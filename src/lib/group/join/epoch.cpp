#include "group/join/epoch.hpp"

#include <cstddef>
#include <utility>

#include "core/hash.hpp"

namespace col::group {

RecordPtr first_record(std::string_view id, int world_size) {
  std::vector<Seat> seats;
  for (int rank = 0; rank < world_size; ++rank)
    seats.push_back({.incarnation = core::Hash().add(id).add(rank).value()});
  return std::make_shared<const EpochRecord>(first_epoch(std::move(seats), core::Hash().add(id).value()));
}

std::shared_ptr<Epoch> first_epoch_of(const GroupSpec& wanted, bool names_wire, std::string id,
                                      std::shared_ptr<Store> place) {
  auto epoch = std::make_shared<Epoch>();
  epoch->group = wanted.name;
  epoch->record = epoch->first = first_record(id, wanted.world_size);
  epoch->id = std::move(id);
  epoch->self = epoch->record->members[static_cast<std::size_t>(wanted.rank)].incarnation;
  epoch->place = std::move(place);
  epoch->wanted = wanted;
  epoch->names_wire = names_wire;
  return epoch;
}

std::shared_ptr<Epoch> next_epoch_of(const Epoch& before, RecordPtr record) {
  auto epoch = std::make_shared<Epoch>();
  epoch->group = before.group;
  epoch->id = before.id;
  epoch->self = before.self;
  epoch->record = std::move(record);
  epoch->place = before.place;
  epoch->wanted = before.wanted;
  epoch->names_wire = before.names_wire;
  epoch->settled = before.settled;
  return epoch;
}

}  // namespace col::group
