// Calls that the ranks of a group on GPUs have announced, for one another. NCCL does not notice calls that differ:
// mostly they end well on all ranks, with wrong results. So each rank leaves the number and a hash of its calls in its
// page, before they begin, and whoever waits on the host, or sees an end, compares. Between hosts, which have no page
// in common, the first rank of each does so by the store, once a second.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "group/call/operation.hpp"

namespace col::group {

struct Surroundings;

// Requires: the group's lock is held.
class Announced {
 public:
  // `of` must outlive it.
  explicit Announced(Surroundings& of);

  // A collective; `hash`: of this one and of all before. A few words of memory, and no call of a driver.
  void collective(std::uint64_t number, std::uint64_t hash) noexcept;
  // A message between two ranks; `stream` tells those of one pair and kind from all others, `describe` is asked when
  // ranks differ.
  void message(int peer, std::uint64_t stream, std::uint64_t number, std::uint64_t hash,
               std::function<Operation()> describe);
  // True if some rank has announced another call than another rank. This rank, or another one, will know which: until
  // then, nothing may pass for ended.
  bool differ() noexcept;

 private:
  static constexpr std::size_t kKept = 16;
  struct Message {
    int peer;
    std::uint64_t stream, number, hash;
    std::function<Operation()> describe;
  };

  const RankRecord* record_of(int rank);
  bool differs_from(const RankRecord& other) const noexcept;
  bool has_other_messages();
  bool hosts_differ();
  std::string encode() const;
  bool differs_from(const std::string& calls) const;
  void tell();

  Surroundings& of_;
  const std::uint64_t stream_;      // of the collectives
  const std::uint64_t difference_;  // a stream of one call: that a difference was seen
  std::uint64_t last_ = 0;
  std::array<std::uint64_t, kKept> hashes_{};  // of the last collectives, by number
  std::deque<Message> messages_;               // the last ones
  std::vector<const RankRecord*> records_;     // by rank; null: not seen so far, or on another host
  std::vector<int> hosts_;                     // the first rank of each host, if there are several
  core::Clock::time_point next_beat_;
  bool differ_ = false;
};

}  // namespace col::group
