#include "group/diagnosis/world_ranks.hpp"

#include <vector>

#include "support/catch.hpp"

using col::Error;
using col::ErrorCode;
using col::group::name_world_ranks;
using col::group::with_world_rank;

namespace {

// Ranks 0, 1, 2 of the group are 4, 5, 2 of the job.
std::vector<col::PeerInfo> peers() {
  std::vector<col::PeerInfo> list(3);
  int rank = 0;
  for (const int global : {4, 5, 2}) {
    list[static_cast<std::size_t>(rank)].rank = rank;
    list[static_cast<std::size_t>(rank)].global_rank = global;
    ++rank;
  }
  return list;
}

}  // namespace

TEST_CASE("world ranks: each number is said once, and those that are the same are not", "[group]") {
  CHECK(name_world_ranks("rank 1 did not come; rank 1 is late", peers()) ==
        "rank 1 (world rank 5) did not come; rank 1 is late");
  CHECK(name_world_ranks("ranks 0, 1 called", peers()) == "ranks 0, 1 (world ranks 4, 5) called");
  CHECK(name_world_ranks("rank 2 is the odd one", peers()) == "rank 2 is the odd one");
  CHECK(name_world_ranks("rank 3 of 3", peers()) == "rank 3 of 3");  // no member
}

TEST_CASE("world ranks: a text that has them, and ranks of the job, stay as they are", "[group]") {
  const std::string once = name_world_ranks("rank 1 waits for rank 0 of the job", peers());
  CHECK(once == "rank 1 (world rank 5) waits for rank 0 of the job");
  CHECK(name_world_ranks(once, peers()) == once);
}

TEST_CASE("world ranks: what the error of another group says stays", "[group]") {
  CHECK(name_world_ranks("rank 1 has left the group after an error of group 'row': rank 0 has ended", peers()) ==
        "rank 1 (world rank 5) has left the group after an error of group 'row': rank 0 has ended");
}

TEST_CASE("world ranks: a culprit that is no member keeps its rank of the job", "[group]") {
  const Error error = with_world_rank(Error(ErrorCode::timeout, "rank 1 waits", "g", -1, 7), peers());
  CHECK(error.rank() == -1);
  CHECK(error.world_rank() == 7);
  CHECK(error.message() == "rank 1 (world rank 5) waits");
  CHECK(with_world_rank(Error(ErrorCode::timeout, "late", "g", 1), peers()).world_rank() == 5);
  CHECK(with_world_rank(Error(ErrorCode::timeout, "late", "g"), peers()).world_rank() == -1);
}
