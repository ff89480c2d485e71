// Under another name: the real ones are in the program, too.
#define Collectives FaultyCollectives

#include "unit/shm/fast_lane_faults.hpp"

namespace col::test {
namespace {

int planted_fault = 0;

bool planted(int fault) {
  return planted_fault == fault;
}

}  // namespace
}  // namespace col::test

#include "collectives_with_faults.hpp"
#include "unit/shm/fast_lane.hpp"

std::string col::test::problem_with(int fault, std::uint64_t seed) {
  planted_fault = fault;
  // One of the faults is missed by one search in twelve.
  const std::uint64_t searches = fault == 0 ? 2 : 20;
  std::string problem;
  for (std::uint64_t search = 0; search < searches; ++search) {
    for (const int size : {2, 3}) {
      const std::size_t slot = search % 2 == 0 ? 256 : 4096;
      if (problem.empty())
        problem = random_calls<shm_backend::FaultyCollectives>(size, 1'000, seed + search, slot).problem;
    }
  }
  return problem;
}
