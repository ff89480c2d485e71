// The epoch of a group, as a process that is in it knows it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <col/context.hpp>
#include <col/store.hpp>

#include "group/join/epoch_record.hpp"

namespace col::group {

// The groups that are made from the group hold it, too.
struct Epoch {
  std::string group;  // its name
  RecordPtr record;   // open
  Incarnation self = 0;
  std::shared_ptr<Store> place;  // where all epochs of the group are decided; shared with them
  RecordPtr first;               // in the first epoch: the record; null later
  // As the program has asked for the group, with the backend that a setting has named.
  GroupSpec wanted = {};
  bool names_wire = false;  // as of JoinRequest

  std::uint64_t settled = 0;              // as of Finish; of who has set is_renewing
  std::atomic<bool> is_renewing = false;  // a thread is in renew()
};

// `token`: of the group, which no other has. So has no other process the incarnation that is made from it.
std::shared_ptr<Epoch> first_epoch_of(const GroupSpec& wanted, bool names_wire, std::uint64_t token,
                                      std::shared_ptr<Store> place);
// The one that follows `before`.
std::shared_ptr<Epoch> next_epoch_of(const Epoch& before, RecordPtr record);

}  // namespace col::group
