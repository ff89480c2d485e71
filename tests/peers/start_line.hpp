// The start line: a barrier in shared memory, the same for every contestant and none of the contestant's own.
//
// One run has one file of zeros, at least StartLine::bytes() long, which every rank maps. Ranks that fit on the machine
// leave it at an agreed moment just ahead, so that none of them starts late by the time that a cache line takes to
// reach it. With more ranks than processors not all can start together; each leaves when it gets to run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace contest {

std::int64_t now_ns();

class StartLine {
 public:
  static constexpr int kMaxRanks = 512;
  static constexpr std::size_t kMaxSamples = 4096;

  // When a rank began an iteration, and when it had finished.
  struct Sample {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };

  struct Place {
    std::string path;    // of the file
    int processors = 1;  // that the ranks may use together; a launcher may have bound each to fewer
    bool sleeps =
        false;  // while it waits, for a millisecond each time: hundreds of ranks that yield are in the way of others
  };

  static std::size_t bytes();

  // Throws std::runtime_error when the file cannot be mapped. `idle` is called every millisecond while this rank waits:
  // MPI progresses only inside its own calls, and a rank that waits elsewhere may hold up its peers for ever.
  StartLine(const Place& place, int rank, int size, std::function<void()> idle);
  ~StartLine();
  StartLine(const StartLine&) = delete;
  StartLine& operator=(const StartLine&) = delete;

  // Returns after all ranks have entered, rank 0's value on all of them. Throws std::runtime_error after three minutes.
  std::int64_t meet(std::int64_t value_of_rank_0 = 0);
  // The same, and all leave together.
  std::int64_t start(std::int64_t value_of_rank_0);

  // On rank 0 the samples of all ranks, by rank; elsewhere nothing. Every rank calls it, with equally many.
  std::vector<std::vector<Sample>> collect(const std::vector<Sample>& own);

 private:
  struct Shared;
  std::int64_t pass(std::int64_t value, std::int64_t lead_ns);

  Shared* shared_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
  bool one_processor_each_ = true;
  bool sleeps_ = false;
  std::uint32_t passed_ = 0;
  std::function<void()> idle_;
};

}  // namespace contest
