// The epoch of a group, as a process that is in it knows it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <col/context.hpp>
#include <col/store.hpp>

#include "group/join/epoch_record.hpp"

namespace col::group {

// The groups that are made from the group hold it, too.
struct Epoch {
  std::string group;      // its name
  std::string id;         // of the group in its first epoch
  RecordPtr record = {};  // open; null: this process is to join
  Incarnation self = 0;
  std::shared_ptr<Store> place = {};  // where all epochs of the group are decided; shared with them
  RecordPtr first = {};               // the record of the first epoch; null where there have been others
  // As the program has asked for the group, with the backend that a setting has named.
  GroupSpec wanted = {};
  bool names_wire = false;  // as of JoinRequest

  std::uint64_t settled = 0;              // as of Finish; of who has set is_renewing
  std::atomic<bool> is_renewing = false;  // a thread is in renew()
};

// `id`: of the group, which no other has. So has no other process the incarnation that is made from it.
RecordPtr first_record(std::string_view id, int world_size);
std::shared_ptr<Epoch> first_epoch_of(const GroupSpec& wanted, bool names_wire, std::string id,
                                      std::shared_ptr<Store> place);
// The one that follows `before`.
std::shared_ptr<Epoch> next_epoch_of(const Epoch& before, RecordPtr record);

}  // namespace col::group
