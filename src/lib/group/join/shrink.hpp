// How the remaining ranks of a group agree, through the store, on the ranks that they leave out. The group itself may
// be broken: only its scope is used.
//
//   every rank that stays    writes whom it leaves out:  shrink/<number>/<rank> = words
//                            reads what the other ranks that stay write, and compares
//   a rank with an error     publishes it, and all end with the first one
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <col/job.hpp>
#include <col/store.hpp>

#include "group/diagnosis/diagnosis.hpp"

namespace col::group {

class ShrinkAgreement {
 public:
  // `number`: the number of the agreement, equal on all ranks. `staying`: in rank order, with this rank.
  ShrinkAgreement(Surroundings& surroundings, std::uint64_t number, std::vector<int> staying);

  // Writes `words`, and returns when all ranks that stay have written the same. Throws, on all ranks that are still in
  // it: mismatch (who writes what), timeout (who has not come), peer_lost (a rank that should stay has died), the error
  // given to publish(), and those of wait.check() and the store.
  void reach(const std::string& words, WaitContext& wait);
  // Ends the agreement for all ranks with this error. Returns the error that came first.
  Error publish(const Error& error) noexcept;

 private:
  void collect();
  void compare(const std::string& words, WaitContext& wait);
  std::vector<int> missing() const;
  void look_for_dead(const std::vector<int>& absent) const;

  std::string key_of(std::size_t rank) const;

  Surroundings& surroundings_;
  const std::uint64_t number_;
  const std::shared_ptr<Store> failures_;  // the place of the first error; shared, because adapters keep it
  const std::vector<int> staying_;
  std::vector<std::string> heard_;  // by rank in the group; empty: nothing so far
};

}  // namespace col::group
