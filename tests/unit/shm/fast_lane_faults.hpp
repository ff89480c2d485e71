// The collectives over shared memory with a planted fault: mutate_fast_lane.sh.
#pragma once

#include <cstdint>
#include <string>

namespace col::test {

inline constexpr int kLaneFaults = 13;

// What fast_lane.hpp finds with fault number `fault`, from 1; 0: none is planted.
std::string problem_with(int fault, std::uint64_t seed);

}  // namespace col::test
