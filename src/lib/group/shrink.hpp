// How the ranks that are left of a group agree, through the store, on whom they leave behind. The group itself may be
// broken: nothing of it is used but its scope.
//
//   every rank that stays    says whom it leaves out:  shrink/<number>/<rank> = words
//                            reads what the others that stay say, and compares
//   whoever finds an error   publishes it, and all end with the first
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <col/job.hpp>
#include <col/store.hpp>

#include "group/diagnosis.hpp"

namespace col::group {

class ShrinkAgreement {
 public:
  // `number`: of the agreement, alike on all ranks. `staying`: in the order of ranks, this one among them.
  ShrinkAgreement(Surroundings& surroundings, std::uint64_t number, std::vector<int> staying);

  // Says `words` and returns when all that stay have said the same. Throws, on all that are still in it: mismatch (who
  // says what), timeout (who has not come), peer_lost (one that should stay has died), what publish() was given, and
  // those of wait.check() and the store.
  void reach(const std::string& words, WaitContext& wait);
  // Ends the agreement for all with this error; returns that which came first.
  Error publish(const Error& error) noexcept;

 private:
  void collect();
  void compare(const std::string& words, WaitContext& wait);
  std::vector<int> missing() const;
  void look_for_dead(const std::vector<int>& absent) const;

  std::string key_of(std::size_t rank) const;

  Surroundings& surroundings_;
  const std::uint64_t number_;
  const std::shared_ptr<Store> failures_;  // where the first error is; shared, as adapters keep it
  const std::vector<int> staying_;
  std::vector<std::string> heard_;  // by rank of the group; empty: nothing yet
};

}  // namespace col::group
