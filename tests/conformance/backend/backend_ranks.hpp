// Ranks on every backend, below the group layer: connect requests made by hand, through the public interface.
//
// Catch2 means nothing in a forked child or another thread: a rank says with expect() what it wants, and the test looks
// at how all ended.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <col/backend.hpp>

namespace col::test {

// One rank as its body sees it.
struct BackendRank {
  int rank = 0;
  int size = 1;
  Channel& channel;
  std::shared_ptr<Store> store;  // the ranks' own; "left/<rank>" is set after that rank has destroyed its channel
  std::uint64_t sequence = 0;

  // Stands in for the group layer's fingerprint.
  std::uint64_t next_slot() { return (++sequence) * 0x9e3779b97f4a7c15ULL; }
  bool has(Collective collective) const;
  // Every native entry of request.collective, one after the other; `prepare` before, `check` after each.
  void each_entry(Request request, const std::function<void()>& prepare, const std::function<void()>& check);
  // Waits for at most `timeout`.
  int wait(Ticket ticket, Duration timeout = std::chrono::seconds(20));
};

using BackendBody = std::function<void(BackendRank& rank)>;

void expect(bool condition, const std::string& what);

// Runs `body` as a case on every backend that can be used here, for 1, 2 and 4 ranks: as processes, and as threads
// where the ranks of the backend may be threads.
void on_every_backend(const BackendBody& body, const std::vector<int>& sizes = {1, 2, 4});

// What rank `rank` contributes: different on every rank and at every place.
std::vector<std::int32_t> input_of(int rank, std::size_t count);

}  // namespace col::test
