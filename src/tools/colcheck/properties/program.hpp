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
#include "colcheck/engine/property.hpp"

namespace col::colcheck {

// Numbers of ranks for sequences: those of the selection, at least `fewest`. A quick run uses none above five, unless
// there are no others.
std::vector<int> ranks_for_sequences(const Selection& selection, int fewest = 1);

// Counts up to draw several things in turn, so that a few cases contain all of them.
template <class T>
const T& in_turn(const std::vector<T>& all, std::size_t number) {
  return all[number % all.size()];
}

// Appends cases of one property. Each has the next of the numbers of ranks, and a seed of its own; `salt` keeps those
// of different properties apart.
class SequenceCases {
 public:
  SequenceCases(const Selection& selection, std::string_view property, std::uint64_t salt, std::vector<int> ranks,
                std::vector<Case>& cases)
      : selection_(selection), property_(property), salt_(salt), ranks_(std::move(ranks)), cases_(cases) {}

  bool quick() const { return selection_.effort == Effort::quick; }
  // Those of the selection; none if there is no number of ranks, or if it has no place for what is chosen by default.
  std::vector<std::string> backends() const;
  const std::vector<int>& ranks() const { return ranks_; }
  // How many cases there are so far.
  std::size_t number() const { return number_; }
  Case& add(const std::string& backend, Primitive primitive, std::uint64_t variant = 0);

 private:
  const Selection& selection_;
  std::string_view property_;
  std::uint64_t salt_;
  std::vector<int> ranks_;
  std::vector<Case>& cases_;
  std::size_t number_ = 0;
};

// The n-th primitive, round and round.
inline Primitive primitive_in_turn(std::size_t n) {
  return static_cast<Primitive>(n % kPrimitiveCount);
}

// Which calls a program has. Half of them use one primitive.
struct ProgramStyle {
  Primitive about = Primitive::allreduce;
  std::string algorithm = {};  // for these, if it can serve the call; empty: any
  bool blocking = true, asynchronous = true;
  // Whether it may receive from any rank. The sources of such receives are needed to check them.
  bool any_source = true;
  std::string backend = {};        // of the group
  Devices devices = Devices::cpu;  // of all calls
};

// Draws calls for a group. With equal arguments, all ranks draw the same calls.
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
  const int first_tag_;  // for receives from any rank; no other program's messages have it
  std::size_t number_ = 0;
};

// Calls that have been started and not waited for. It keeps what is wrong with their data, and goes on with the others:
// a rank that gave up would leave its peers waiting.
class OpenCalls {
 public:
  // Blocking calls have ended when it returns. Throws col::Error, as all following functions do.
  void start(const Group& group, const Case& c);
  bool empty() const { return open_.empty(); }
  std::size_t size() const { return open_.size(); }
  Call& operator[](std::size_t index) { return *open_[index].call; }
  // Waits for one call (the oldest has index 0), or for all calls in a random order.
  void end(std::size_t index);
  void end_all(std::mt19937_64& random);
  // The first problem that was found; empty if all is well.
  const std::string& problem() const { return problem_; }

 private:
  struct Open {
    std::unique_ptr<Call> call;
    Case c;
  };
  std::vector<Open> open_;
  std::string problem_;
};

// Runs `length` calls of a program. Each rank waits for calls in flight at its own times. Returns what is wrong with
// the data.
std::string run_program(const Group& group, const ProgramStyle& style, std::uint64_t seed, std::size_t length);

}  // namespace col::colcheck
