// Programs that start their ranks by themselves: they meet through a store alone, and a driver declares their groups.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "conformance/group/worlds.hpp"
#include "conformance/store/stores.hpp"
#include "support/fork.hpp"

using namespace std::chrono_literals;
using col::ContextSpec;
using col::Deadline;
using col::test::expect;

namespace {

constexpr int kRanks = 4;

// One rank of a program: a world, and a group that the driver has declared.
void work_together(const std::shared_ptr<col::Store>& store, int rank) {
  col::Context context(ContextSpec::meet(store, rank, kRanks, "run", 20s));
  const col::Context::Scope scope(context);
  col::Group world = col::init();
  std::vector<int> values(1000, rank);
  world.allreduce(values);
  expect(values[999] == kRanks * (kRanks - 1) / 2);
  if (rank != 0) {
    double value = rank;
    col::allreduce(value, {.group = "others", .op = col::ReduceOp::max});
    expect(value == kRanks - 1 && col::get_rank("others") == kRanks - 1 - rank);
  }
  col::finalize();
}

void declare_others(const std::shared_ptr<col::Store>& store) {
  col::declare_group(store, {.name = "others", .ranks = {3, 2, 1}, .job_id = "run"});
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("meet: threads that share a store are a world", "[group]", col::test::ThreadStores) {
  TestType place;
  declare_others(place.store);
  col::test::check_good(
      col::test::run_threads(kRanks, [&](int rank, col::Context&) { work_together(place.store, rank); }));
}

TEST_CASE("meet: processes that share a directory are a world", "[group]") {
  const col::test::TempDir directory;
  const auto store = [&] { return col::open_store("file://" + directory.path()); };
  declare_others(store());
  col::test::check_good(
      col::test::run_processes(kRanks, [&](int rank, col::Context&) { work_together(store(), rank); }));
}

// The server has a process of its own: ThreadSanitizer ends a child that starts a thread where its parent had one.
TEST_CASE("meet: processes that share a server are a world", "[group]") {
  struct Shared {
    std::atomic<int> port{0};
    std::atomic<int> ranks_left{kRanks};
  };
  const col::test::SharedByForks<Shared> shared;
  const auto wait_for = [](const auto& holds) {
    const Deadline deadline = Deadline::after(20s);
    while (!holds()) {
      expect(!deadline.expired());
      std::this_thread::yield();
    }
  };
  const col::StoreOptions options{.token = "a token", .job = col::store_job("run", 0)};
  const auto store = [&] { return col::open_store("tcp://127.0.0.1:" + std::to_string(shared->port), options); };
  const auto serve = [&] {
    const col::StoreServer server({.host = "127.0.0.1", .token = options.token, .job = options.job});
    shared->port = server.port();
    declare_others(store());
    wait_for([&] { return shared->ranks_left == 0; });
  };
  col::test::check_good(col::test::run_processes(kRanks + 1, [&](int rank, col::Context&) {
    if (rank == kRanks) return serve();
    wait_for([&] { return shared->port != 0; });
    work_together(store(), rank);
    --shared->ranks_left;
  }));
}

TEST_CASE("meet: an interrupt ends the wait for a rank that does not come", "[group]") {
  struct Stopped {};
  const auto stop = [] { throw Stopped(); };
  CHECK_THROWS_AS(ContextSpec::meet(col::make_memory_store(), 0, 2, "run", 60s, stop), Stopped);
  CHECK_THROWS_AS(ContextSpec::meet(col::make_memory_store(), 1, 2, "run", 60s, stop), Stopped);
  CHECK(ContextSpec::meet(nullptr, 0, 1, "run", {}, stop).interrupt);
}

TEST_CASE("meet: a rank that dies afterwards is lost to the others, as under colrun", "[group]") {
  const auto outcomes = col::test::run_processes(3, [](int rank, col::Context& given) {
    col::Context context(ContextSpec::meet(given.spec().store, rank, 3, "run", 30s));
    col::Group world = context.init_group({.rank = rank, .world_size = 3});
    if (rank == 1) std::_Exit(7);
    world.barrier();
  });
  col::test::check_all(outcomes, {col::ErrorCode::peer_lost, 1, "", true}, 1);
}
