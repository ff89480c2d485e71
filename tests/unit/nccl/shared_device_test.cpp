// Who may be on one device with whom, as all ranks judge it.
#include <vector>

#include "backend/seats.hpp"
#include "support/catch.hpp"

using col::backend::find_shared_device;
using col::backend::Seat;

TEST_CASE("shared devices: none where each rank has its own, whatever it cannot share", "[nccl]") {
  CHECK(!find_shared_device({}));
  CHECK(!find_shared_device(std::vector<Seat>{{0, "a", "too old"}, {1, "b", "too old"}, {2, "c", ""}}));
}

TEST_CASE("shared devices: the first two ranks on one are named", "[nccl]") {
  const auto shared =
      find_shared_device(std::vector<Seat>{{0, "a", ""}, {1, "b", ""}, {2, "c", ""}, {3, "b", ""}, {4, "a", ""}});
  REQUIRE(shared);
  CHECK(shared->first == 1);
  CHECK(shared->second == 3);
  CHECK(shared->device == "b");
  CHECK(shared->problem.empty());
}

TEST_CASE("shared devices: one rank that cannot share spoils it for all, wherever it is", "[nccl]") {
  const auto shared = find_shared_device(std::vector<Seat>{{0, "a", ""}, {1, "a", ""}, {2, "b", "NCCL is too old"}});
  REQUIRE(shared);
  CHECK(shared->first == 0);
  CHECK(shared->second == 1);
  CHECK(shared->problem == "on rank 2, NCCL is too old");
}
