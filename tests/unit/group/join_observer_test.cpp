#include "group/join/join_observer.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <col/group.hpp>
#include <col/store.hpp>

#include "group/diagnosis/failure.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using col::Error;
using col::ErrorCode;

namespace {

// A rank that waits until a group of the job's ranks 4, 2 and 7 is made, from one that they have in common.
struct Joiner {
  Joiner() { relatives.origin = col::make_memory_store(); }

  std::optional<Error> look(std::chrono::milliseconds waited) {
    try {
      observer.on_slow(waited);
    } catch (const Error& error) {
      return error;
    }
    return std::nullopt;
  }

  col::GroupSpec spec{.name = "row", .rank = 1, .world_size = 3};
  col::ContextSpec context;
  std::vector<int> members{4, 2, 7};
  col::group::Connected relatives;
  std::vector<int> told;
  col::group::JoinRequest request{.spec = spec,
                                  .context = context,
                                  .job_scope = nullptr,
                                  .job = "job#0",
                                  .members = members,
                                  .relatives = &relatives,
                                  .tell = [this](int held_up_by) { told.push_back(held_up_by); }};
  col::group::JoinObserver observer{request};
};

}  // namespace

TEST_CASE("join observer: who has failed in the group from which one is made does not come", "[group]") {
  Joiner joiner;
  CHECK_FALSE(joiner.look(100ms));
  col::group::publish_failure(*joiner.relatives.origin,
                              Error(ErrorCode::peer_lost, "rank 6 has ended", "default", 6, 7), 0);
  const auto error = joiner.look(300ms);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::peer_lost);
  CHECK(error->group() == "row");
  CHECK(error->rank() == 2);
  CHECK(error->world_rank() == 7);
  CHECK(error->message() == "not all ranks come, after an error of group 'default': rank 6 has ended");
}

TEST_CASE("join observer: a rank says in its other groups that it waits, once, and that it waits no more", "[group]") {
  Joiner joiner;
  joiner.look(100ms);
  CHECK(joiner.told.empty());
  joiner.look(300ms);
  joiner.look(600ms);
  CHECK(joiner.told == std::vector{col::group::kSomebody});
  joiner.observer.withdraw();
  joiner.observer.withdraw();
  CHECK(joiner.told == std::vector{col::group::kSomebody, col::group::kNobody});
}
