#include "simulation/mistake.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace col::test {

using Kind = Mistake::Kind;

Mistake choose_mistake(Random& random, int ranks) {
  Mistake mistake;
  mistake.kind = static_cast<Kind>(random.below(6));
  mistake.rank = random.from_to(0, ranks - 1);
  if (mistake.kind == Kind::twice) mistake.instead = (mistake.rank + random.from_to(1, ranks - 1)) % ranks;
  // A world of one would need nobody.
  if (mistake.kind == Kind::world_size)
    mistake.instead = random.one_in(2) ? std::max({ranks - 1, mistake.rank + 1, 2}) : ranks + random.from_to(1, 3);
  if (mistake.kind == Kind::world_size && mistake.instead == ranks) ++mistake.instead;
  return mistake;
}

std::string describe(const Mistake& mistake) {
  constexpr std::array kNames = {"another world size", "another rank",    "absent",
                                 "another job",        "another backend", "an unknown backend"};
  std::string text = fmt::format("mistake of {}: {}", mistake.rank, kNames[static_cast<std::size_t>(mistake.kind)]);
  if (mistake.instead > 0 || mistake.kind == Kind::twice) text += fmt::format(" {}", mistake.instead);
  return text;
}

}  // namespace col::test
