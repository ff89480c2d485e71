// Every asynchronous operation there is, with inputs that differ by rank, element and flight, and what it must give.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <col/col.hpp>

namespace col::test {

// One operation in flight. The buffers stay where they are until it is destroyed.
struct Flight {
  std::string what;
  std::vector<int> in, out, want;
  std::vector<std::size_t> in_counts, out_counts;
  std::vector<Work> works;
};

// How many kinds of flight there are.
inline constexpr int kFlightKinds = 19;

// Starts one of `kind` (0 to kFlightKinds - 1); all ranks name the same kind, count and salt.
std::unique_ptr<Flight> launch(Group& group, int kind, std::size_t count, int salt);

// Throws when a flight whose works have ended did not give what it must.
void expect_arrived(const Flight& flight);

}  // namespace col::test
