// Groups that a process declares which is no rank of them.
#include <col/group.hpp>

#include "support/outcomes.hpp"
#include "unit/group/stuck_backend.hpp"

using namespace std::chrono_literals;
using col::ErrorCode;
using col::test::check_good;
using col::test::expect;
using col::test::expect_error;

namespace {

// The ranks of job "job", as threads.
std::vector<col::test::Outcome> run_job(int ranks, const std::shared_ptr<col::Store>& store,
                                        const col::test::Body& body) {
  col::test::register_stuck_backend();
  return col::test::run_threads(ranks,
                                [&](int rank, col::Context&) {
                                  col::Context context(col::ContextSpec::meet(store, rank, ranks, "job", 20s));
                                  const col::Context::Scope scope(context);
                                  body(rank, context);
                                },
                                {.control_page = false});
}

col::GroupDeclaration pair_of(std::vector<int> ranks) {
  return {.name = "pair", .ranks = std::move(ranks), .backend_name = "stuck", .job_id = "job"};
}

bool knows(col::Context& context, const std::string& name) {
  try {
    context.group(name);
    return true;
  } catch (const col::Error& error) {
    expect(error.code() == ErrorCode::not_initialized, error.what());
    return false;
  }
}

}  // namespace

TEST_CASE("declare: the ranks that are listed join at their first call, and no others", "[group]") {
  const auto store = col::make_memory_store();
  col::declare_group(store, pair_of({3, 1}));
  check_good(run_job(4, store, [](int rank, col::Context& context) {
    if (rank % 2 == 0) return expect(!knows(context, "pair"));
    const col::Group group = col::get_group("pair");
    expect(group.size() == 2 && group.rank() == (rank == 3 ? 0 : 1));
    expect(group.world_rank(0) == 3 && group.backend() == "stuck");
  }));
}

TEST_CASE("declare: a group of one", "[group]") {
  const auto store = col::make_memory_store();
  col::declare_group(store, {.ranks = {1}, .job_id = "job"});
  check_good(run_job(2, store, [](int rank, col::Context& context) {
    if (rank == 0) return expect(!knows(context, "default"));
    float value = 2;
    col::allreduce(value);
    expect(value == 2 && col::get_collective_group_size() == 1);
  }));
}

TEST_CASE("declare: a group belongs to one run of one job", "[group]") {
  const auto store = col::make_memory_store();
  auto other = pair_of({0, 1});
  other.job_id = "another job";
  col::declare_group(store, other);
  other = pair_of({0, 1});
  other.restart_count = 1;
  col::declare_group(store, other);
  check_good(run_job(2, store, [](int, col::Context& context) { expect(!knows(context, "pair")); }));
}

TEST_CASE("declare: a second declaration must be equal, as long as the first one stands", "[group]") {
  const auto store = col::make_memory_store();
  col::declare_group(store, pair_of({0, 1}));
  col::declare_group(store, pair_of({0, 1}));
  const auto refused = [&](const col::GroupDeclaration& group) {
    const col::Error error = expect_error(ErrorCode::already_initialized, "with ranks 0, 1 and backend stuck",
                                          [&] { col::declare_group(store, group); });
    CHECK(error.group() == "pair");
  };
  refused(pair_of({1, 0}));
  refused(pair_of({0, 1, 2}));
  auto over_gloo = pair_of({0, 1});
  over_gloo.backend_name.clear();
  over_gloo.backend = col::Backend::gloo;
  refused(over_gloo);

  CHECK(col::undeclare_group(store, "pair", "job"));
  CHECK_FALSE(col::undeclare_group(store, "pair", "job"));
  CHECK_FALSE(col::undeclare_group(store, "nobody's", "job"));
  col::declare_group(store, pair_of({1, 0}));
  check_good(
      run_job(2, store, [](int rank, col::Context& context) { expect(context.group("pair").rank() == 1 - rank); }));
}

TEST_CASE("declare: a group that is undeclared is joined by nobody", "[group]") {
  const auto store = col::make_memory_store();
  col::declare_group(store, pair_of({0, 1}));
  CHECK(col::undeclare_group(store, "pair", "job"));
  check_good(run_job(2, store, [](int, col::Context& context) { expect(!knows(context, "pair")); }));
}

TEST_CASE("declare: a group that its ranks have destroyed can be declared again, and joined again", "[group]") {
  const auto store = col::make_memory_store();
  col::declare_group(store, pair_of({0, 1}));
  check_good(run_job(2, store, [&](int rank, col::Context& context) {
    for (int round = 0; round < 5; ++round) {
      context.group("pair");
      col::destroy_collective_group("pair");
      expect(!knows(context, "pair"));
      // The driver, which waits until all ranks have destroyed it.
      store->add("destroyed", 1);
      if (rank == 0) {
        while (store->get("destroyed") != std::to_string(2 * (round + 1)))
          store->wait_for("destroyed", col::test::kDeadline);
        col::declare_group(store, pair_of(round % 2 == 0 ? std::vector{1, 0} : std::vector{0, 1}));
        store->set("declared " + std::to_string(round), "");
      }
      store->wait_for("declared " + std::to_string(round), 20s);
    }
    expect(context.group("pair").rank() == 1 - rank);
  }));
}

TEST_CASE("declare: a group that its ranks have made by themselves stands in the way until it is destroyed",
          "[group]") {
  const auto store = col::make_memory_store();
  check_good(run_job(2, store, [&](int rank, col::Context& context) {
    const auto make = [&] {
      context.init_group({.name = "pair", .rank = rank, .world_size = 2, .backend_name = "stuck"});
    };
    make();
    if (rank == 0) {  // the rank that writes the record
      expect_error(ErrorCode::already_initialized, "destroy it", [&] { col::declare_group(store, pair_of({1, 0})); });
      context.destroy_group("pair");
      col::declare_group(store, pair_of({1, 0}));
      store->set("declared", "");
    }
    store->wait_for("declared", 20s);
    context.destroy_group("pair");  // rank 1, which is no rank 0 and ends no record; nothing on rank 0
    expect(context.group("pair").rank() == 1 - rank);
  }));
}

TEST_CASE("declare: a wrong declaration is refused, and says what is wrong", "[group]") {
  const auto store = col::make_memory_store();
  const auto refused = [&](const std::shared_ptr<col::Store>& in, const col::GroupDeclaration& group,
                           const std::string& why) {
    expect_error(ErrorCode::invalid_argument, why, [&] { col::declare_group(in, group); });
  };
  refused(nullptr, pair_of({0, 1}), "in a store");
  refused(store, {.name = "", .ranks = {0}}, "needs a name");
  refused(store, pair_of({}), "no rank is listed");
  refused(store, pair_of({0, -1}), "rank -1 is listed");
  refused(store, pair_of({0, 1, 0}), "rank 0 is listed twice");
  expect_error(ErrorCode::invalid_argument, "in a store", [] { col::undeclare_group(nullptr, "pair"); });
  expect_error(ErrorCode::invalid_argument, "needs a name", [&] { col::undeclare_group(store, ""); });
  CHECK(store->num_keys() == 0);
}

TEST_CASE("declare: a backend that a rank does not have is that rank's error", "[group]") {
  const auto store = col::make_memory_store();
  auto group = pair_of({0, 1});
  group.backend_name = "nosuch";
  col::declare_group(store, group);
  col::test::check_all(run_job(2, store, [](int, col::Context& context) { context.group("pair"); }),
                       {ErrorCode::unavailable, {}, "backend 'nosuch'"});
}

TEST_CASE("declare: a rank that the job does not have is named by those who wait for it", "[group]") {
  const auto store = col::make_memory_store();
  col::declare_group(store, pair_of({0, 1, 7}));
  col::test::check_all(run_job(2, store,
                               [&](int rank, col::Context& given) {
                                 col::ContextSpec spec = given.spec();
                                 spec.timeout = 3s;
                                 spec.control = nullptr;
                                 col::Context context(spec);
                                 context.group("pair");
                                 expect(rank < 0);
                               }),
                       {ErrorCode::timeout, 2, "rank 2 (world rank 7) to join group 'pair'"});
}
