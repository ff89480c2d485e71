// What the lead tells the ranks to do, and what they answer: texts that travel through the job's store, so that a
// checker of collectives needs none.
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
    probe,  // the first `ranks` ranks make a group over `backend`: does it work, and what algorithms of its own has it?
    run,    // the first `ranks` ranks make a group over `backend` and run the cases in it, one after the other
    share,  // every rank runs those cases alone whose number is its own modulo the world's size
  };
  Kind kind = Kind::probe;
  Devices devices = Devices::cpu;  // as those of all cases
  std::string backend = {};
  int ranks = 0;
  std::vector<Case> cases = {};
};

// One rank's answer.
struct Answer {
  struct Entry {
    std::size_t index;  // of the case
    Finding finding;    // other than a pass without a digest
  };
  std::vector<Entry> entries = {};
  // Cases that this rank has come to an end with; the group was given up after the last one if there are more.
  std::size_t done = 0;
  std::string trouble = {};  // why the group could not be made; nothing was run then
  // A probe's, from rank 0: what the backend offers besides the built-in algorithms.
  std::map<Collective, std::vector<std::string>> natives = {};
  RankGpu gpu = {};  // of a look
};

std::string encode(const Order& order);
std::string encode(const Answer& answer);
// Requires: what the other one made.
Order decode_order(const std::string& text);
Answer decode_answer(const std::string& text);

}  // namespace col::colcheck
