// A mistake of a simulated job: a rank comes to the first meeting with words that the others do not have.
#pragma once

#include <string>

#include "simulation/random.hpp"

namespace col::test {

struct Mistake {
  enum class Kind {
    world_size,  // it was told of another number of ranks
    twice,       // it was told the number of another rank
    absent,      // it does not come
    job,         // it was told of another job
    backend,     // it wants another one
    unknown      // it wants one that is not there
  };
  Kind kind = Kind::absent;
  int rank = 0;
  int instead = 0;  // twice: the other rank; world_size: what it was told

  // True if an error may name that rank.
  bool is_about(int one) const { return one == rank || (kind == Kind::twice && one == instead); }
};

Mistake choose_mistake(Random& random, int ranks);
std::string describe(const Mistake& mistake);

}  // namespace col::test
