// What a drawing shows: every message of all ranks, when it goes, and what is in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <col/plan.hpp>

namespace col::plan::drawing {

inline constexpr int kMostRanks = 64;  // a bit each, in Part::ranks
inline constexpr std::size_t kMostRounds = 256;

enum class Payload : std::uint8_t { signal, input, partial, finished };
inline constexpr int kPayloads = 4;

// Neighbouring elements of one history.
struct Part {
  std::size_t count = 0;
  std::size_t place = 0;    // of the first, in the whole vector, or in the input that it comes from
  std::uint64_t ranks = 0;  // whose input is in it
  Payload payload = Payload::input;
};

struct Message {
  int from = 0, to = 0;
  std::size_t round = 0;
  std::vector<Part> parts = {};  // none: a signal
  Payload payload = Payload::signal;
};

// A rank combines elements at the end of a round.
struct Reduction {
  int rank = 0;
  std::size_t round = 0;
};

struct Trace {
  std::size_t rounds = 0;
  std::vector<Message> messages = {};  // by round, then by sender, then as the sender lists them
  std::vector<Reduction> reductions = {};
};

// Follows the plans. A message is in the round of that of its ends which comes later, where a rank's rounds are counted
// so that each comes after the messages of the one before; rounds in which nobody sends are left out. Ranks that keep
// step keep their own numbers. Throws invalid_argument beyond the limits, and when the plans do not pair.
Trace trace(const PlanProblem& problem, const PlanOfRank& plans);

// "x0-2[3,5-7]": elements 3, 5, 6 and 7 of the inputs of ranks 0 to 2, combined; "y[3]": of the result; "[3]": where
// there is only one input that can have it. Empty for a signal.
std::string label(const PlanProblem& problem, const Message& message);
// What the labels of these messages mean, in a sentence; empty where they say it themselves.
std::string explanation(const PlanProblem& problem, const Trace& trace);

}  // namespace col::plan::drawing
