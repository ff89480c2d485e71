// The lead's orders to the ranks, and the ranks' answers. They are texts that travel through the job's store, so that a
// checker of collectives does not need collectives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "colcheck/gpus.hpp"
#include "colcheck/property.hpp"

namespace col::colcheck {

struct Order {
  enum class Kind : std::uint8_t {
    look,   // each rank says which GPU it has
    probe,  // the first `ranks` ranks make a group over `backend`: does it work, and which own algorithms does it have?
    run,    // the first `ranks` ranks make a group over `backend` and run the cases in it, one after the other
    share,  // every rank alone runs the cases whose number, modulo the world's size, is its own
  };
  Kind kind = Kind::probe;
  Devices devices = Devices::cpu;  // equal to those of all cases
  std::string backend = {};
  int ranks = 0;
  std::vector<Case> cases = {};
};

// One rank's answer.
struct Answer {
  struct Entry {
    std::size_t index;  // of the case
    Finding finding;    // anything except a pass without a digest
  };
  std::vector<Entry> entries = {};
  // The number of cases that this rank has finished. If there are more cases, the group was given up after the last of
  // these.
  std::size_t done = 0;
  std::string trouble = {};  // why the group could not be made; then nothing was run
  // For a probe, from rank 0: what the backend offers in addition to the built-in algorithms.
  std::map<Collective, std::vector<std::string>> natives = {};
  RankGpu gpu = {};  // for a look
};

std::string encode(const Order& order);
std::string encode(const Answer& answer);
// Requires: `text` is from the corresponding encode function.
Order decode_order(const std::string& text);
Answer decode_answer(const std::string& text);

}  // namespace col::colcheck
