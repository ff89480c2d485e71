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
#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/property.hpp"

namespace col::colcheck {

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
