// The position of one rank in its plan. It is small, because thousands of these exist at once. One Round serves all of
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <col/plan.hpp>

namespace col::plan::simulation {

// A reduce, copy or convert of the present round.
struct Work {
  std::uint32_t needs_end = 0;  // end of its part of RankState::needs, which begins at the end of the previous one's
  double seconds = 0, bytes = 0;
};

struct RankState {
  Plan plan = {};
  std::size_t next_round = 0;
  // The messages of this round that have not arrived, by slot; empty if no work waits for any.
  std::vector<bool> awaited = {};
  std::vector<Work> work = {};            // in order
  std::vector<std::uint32_t> needs = {};  // slots of the messages that pieces of work wait for
  std::size_t next_work = 0, next_need = 0;
  std::size_t in_flight = 0;  // messages of this round that have not arrived
  double free_at = 0;         // when the work so far ends
  double ended_at = -1;       // when the plan ended; negative: it has not
  bool working = false;       // a piece of work is on a shared core or memory
  std::uint8_t parts = 0;     // unfinished parts of that piece
  int node = 0;
  double began_at = 0;                  // the round that was begun last
  std::vector<double> arrived_at = {};  // its messages, by slot; only where a rank is simulated for several
};

// Turns rounds into work and needs.
class RoundReader {
 public:
  RoundReader(const CostModel& model, std::size_t element_size) : model_(model), element_size_(element_size) {}

  // Reads the next round of `rank`, which then has its work and needs. The steps are valid until the next call.
  std::span<const Step> read(RankState& rank);

 private:
  struct Arrival {
    Slice to;
    std::uint32_t slot;
  };
  void sort_arrivals();
  void note_needs(const Slice& slice, std::vector<std::uint32_t>& needs);
  std::size_t first_arrival(const Slice& slice) const;

  const CostModel& model_;
  std::size_t element_size_;
  Round round_;
  std::vector<Arrival> arrivals_;
  std::size_t near_ = 0;  // where the last slice was found among them
};

}  // namespace col::plan::simulation
