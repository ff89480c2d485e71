// Groups that a worker has never named are adopted at their first use.
#include <cstdlib>

#include <col/group.hpp>

#include "group/join/member.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "unit/group/stuck_backend.hpp"

using col::ErrorCode;

namespace {

// The scope in which the contexts of run_threads keep their job's keys.
std::shared_ptr<col::Store> job_scope(const col::Context& context) {
  return col::make_prefix_store(context.spec().store, "job/" + context.spec().job_id + "#0");
}

}  // namespace

TEST_CASE("adoption: a record in the store makes workers join at their first call", "[group]") {
  col::test::register_stuck_backend();
  const auto outcomes = col::test::run_threads(4, [](int rank, col::Context& context) {
    // What a driver would do: ranks 3 and 1 of the job play ranks 0 and 1 of group "pair".
    const col::group::GroupRecord record{"by a driver", 2, "stuck", {3, 1}};
    job_scope(context)->set(col::group::record_key("pair"), record.encode());
    if (rank == 0 || rank == 2) {
      try {
        context.group("pair");
      } catch (const col::Error& error) {
        col::test::expect(error.code() == ErrorCode::not_initialized, error.what());
        return;
      }
      col::test::expect(false, "a stranger joined");
    }
    const col::Group group = context.group("pair");
    col::test::expect(group.size() == 2 && group.rank() == (rank == 3 ? 0 : 1));
    col::test::expect(col::get_rank("pair") == group.rank());
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("adoption: a finished group leaves a record that says how it was made", "[group]") {
  col::test::register_stuck_backend();
  const auto outcomes = col::test::run_threads(2, [](int rank, col::Context& context) {
    context.init_group({.name = "g", .rank = 1 - rank, .world_size = 2, .backend_name = "stuck"});
    col::WaitContext wait(col::Deadline::after(std::chrono::seconds(5)));
    const auto record = col::group::GroupRecord::decode(job_scope(context)->wait(col::group::record_key("g"), wait));
    col::test::expect(record.world_size == 2 && record.backend == "stuck");
    col::test::expect(record.global_ranks == std::vector<int>{1, 0});
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("adoption: a group that was left is not joined again by a call that has forgotten it", "[group]") {
  col::test::register_stuck_backend();
  const auto outcomes = col::test::run_threads(2, [](int rank, col::Context& context) {
    context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend_name = "stuck"});
    // The record is there for certain, so that it could be adopted.
    col::WaitContext wait(col::Deadline::after(std::chrono::seconds(5)));
    job_scope(context)->wait(col::group::record_key("g"), wait);
    context.destroy_group("g");
    try {
      context.group("g");
      col::test::expect(false, "joined again");
    } catch (const col::Error& error) {
      col::test::expect(error.code() == ErrorCode::not_initialized, error.what());
    }
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  for (const auto& outcome : outcomes) CHECK(outcome.seconds < col::test::kPromptSeconds);
}

TEST_CASE("adoption: COL_GROUP_* names a group to join", "[group]") {
  setenv("COL_GROUP_NAME", "from env", 1);
  setenv("COL_GROUP_RANK", "0", 1);
  col::Context context{col::ContextSpec{}};
  CHECK_THROWS_AS(context.group("from env"), col::Error);  // no world size
  setenv("COL_GROUP_WORLD_SIZE", "1", 1);
  CHECK(context.group("from env").size() == 1);
  CHECK_THROWS_AS(context.group("another"), col::Error);
  for (const char* name : {"COL_GROUP_NAME", "COL_GROUP_RANK", "COL_GROUP_WORLD_SIZE"}) unsetenv(name);
}

TEST_CASE("adoption: a group that nobody knows is not initialized, and the error says what to call", "[group]") {
  col::Context context{col::ContextSpec{}};
  const col::Context::Scope scope(context);
  float data[2] = {1, 2};
  try {
    col::allreduce(data, {.group = "nobody"});
    FAIL("no error");
  } catch (const col::Error& error) {
    CHECK(error.code() == ErrorCode::not_initialized);
    CHECK(error.group() == "nobody");
    CHECK(error.message().find("init_collective_group") != std::string::npos);
  }
}
