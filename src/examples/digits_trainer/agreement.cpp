#include "agreement.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace digits {

int agree(col::Group& world, const Problem& mine) {
  constexpr std::int64_t kNobody = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kCodes = 256;
  // The rank above the exit code in one number: the smallest is the lowest rank with a problem, and brings its code.
  const bool has_problem = mine.exit_code != 0;
  const std::int64_t my_vote = has_problem ? world.rank() * kCodes + mine.exit_code : kNobody;
  std::array<std::int64_t, 1> vote{my_vote};
  world.allreduce(vote, {.op = col::ReduceOp::min});
  if (vote[0] == kNobody) return 0;
  if (vote[0] == my_vote) print_problem(mine.message);
  try {
    world.barrier();  // a launcher may end the others as soon as one exits: not before the message is out
  } catch (const col::Error&) {
    // It has ended them already, as a quicker rank has exited: all have entered the barrier, so the message is out.
  }
  return static_cast<int>(vote[0] % kCodes);
}

void print_problem(const std::string& message) {
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fprintf(stderr, "digits_trainer: %s\n", line.c_str());
}

}  // namespace digits
