// Random sequences of calls, the same on all ranks, that are waited for in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <col/group.hpp>

#include "colcheck/engine/call.hpp"
#include "colcheck/property.hpp"

namespace col::colcheck {

// Numbers of ranks for sequences: those of the selection, at least `fewest`. A quick run uses none above five, unless
// there are no others.
std::vector<int> ranks_for_sequences(const Selection& selection, int fewest = 1);

// Counts up to draw the next of several things in turn, so that a few cases have all of them.
template <class T>
const T& in_turn(const std::vector<T>& all, std::size_t number) {
  return all[number % all.size()];
}

// Which calls a program has. Half of them are about one primitive.
struct ProgramStyle {
  Primitive about = Primitive::allreduce;
  std::string algorithm = {};  // of those, where it can serve the call; empty: any
  bool blocking = true, asynchronous = true;
  // Without receives from any rank: their sources are needed to tell whether they are right.
  bool any_source = true;
  std::string backend = {};        // of the group
  Devices devices = Devices::cpu;  // of all calls
};

// Draws calls for a group. All ranks draw the same from equal arguments.
class Program {
 public:
  Program(ProgramStyle style, int ranks, std::uint64_t seed);
  Case next();

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  Primitive draw_primitive();
  void draw_algorithm(Case& c);

  const ProgramStyle style_;
  const int ranks_;
  std::mt19937_64 random_;
  const int first_tag_;  // for receives from any rank: no other program's messages have it
  std::size_t number_ = 0;
};

// Calls that have been started and not been waited for. What is wrong with their data is kept, and the others go on: a
// rank that gave up would leave its peers waiting.
class OpenCalls {
 public:
  // Blocking ones have ended when it returns. Throws col::Error, as all that follow.
  void start(const Group& group, const Case& c);
  bool empty() const { return open_.empty(); }
  std::size_t size() const { return open_.size(); }
  Call& operator[](std::size_t index) { return *open_[index].call; }
  // Waits for that one, the oldest being the first; or for all in a random order.
  void end(std::size_t index);
  void end_all(std::mt19937_64& random);
  // The first wrong thing that was found; empty when all is well.
  const std::string& problem() const { return problem_; }

 private:
  struct Open {
    std::unique_ptr<Call> call;
    Case c;
  };
  std::vector<Open> open_;
  std::string problem_;
};

// Runs `length` calls of a program, each rank waiting for those in flight when it likes; what is wrong with the data.
std::string run_program(const Group& group, const ProgramStyle& style, std::uint64_t seed, std::size_t length);

}  // namespace col::colcheck
