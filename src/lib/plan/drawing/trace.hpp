// All that a drawing shows: every message of all ranks, its round, and its content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <col/plan.hpp>

namespace col::plan::drawing {

inline constexpr int kMostRanks = 64;  // one bit for each, in Fragment::ranks
inline constexpr std::size_t kMostRounds = 256;

enum class Payload : std::uint8_t { signal, input, partial, finished };
inline constexpr int kPayloads = 4;

// Neighbouring elements with the same history.
struct Fragment {
  std::size_t count = 0;
  std::size_t place = 0;    // place of the first element, in the whole vector, or in the input that it comes from
  std::uint64_t ranks = 0;  // the ranks whose input is in it
  Payload payload = Payload::input;
};

struct Message {
  int from = 0, to = 0;
  std::size_t round = 0;
  std::vector<Fragment> parts = {};  // none: a signal
  Payload payload = Payload::signal;
};

// A rank combines elements at the end of a round.
struct Reduction {
  int rank = 0;
  std::size_t round = 0;
};

struct Trace {
  std::size_t rounds = 0;
  std::vector<Message> messages = {};  // ordered by round, then by sender, then as the sender lists them
  std::vector<Reduction> reductions = {};
};

// Follows the plans. Rounds are counted so that each round of a rank comes after the messages of its previous one. A
// message is in the later of the rounds of its two ends. Rounds in which nobody sends are left out. Ranks that run in
// step keep their own numbers. Throws invalid_argument beyond the limits, and if the plans do not pair.
Trace trace(const PlanProblem& problem, const PlanOfRank& plans);

// "x0-2[3,5-7]": elements 3, 5, 6 and 7 of the inputs of ranks 0 to 2, combined. "y[3]": an element of the result.
// "[3]": an element, if only one input can have it. Empty for a signal.
std::string label(const PlanProblem& problem, const Message& message);
// Explains the labels of these messages in a sentence; empty if they need no explanation.
std::string explanation(const PlanProblem& problem, const Trace& trace);

}  // namespace col::plan::drawing
