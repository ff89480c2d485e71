// Worlds that are made from another launcher's variables, from end to end.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <col/group.hpp>
#include <col/store.hpp>

#include "core/log.hpp"
#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/ranks.hpp"
#include "support/temp_dir.hpp"
#include "unit/group/stuck_backend.hpp"

namespace fs = std::filesystem;
using col::ErrorCode;
using col::test::expect;
using col::test::TempDir;

namespace {

using Variables = std::map<std::string, std::string>;

void set(const Variables& values) {
  for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
}

// Sets variables for the length of a test; the program has no other threads then.
class Environment {
 public:
  explicit Environment(Variables values) : values_(std::move(values)) { set(values_); }
  ~Environment() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  Variables values_;
};

Variables torchrun(int rank, int ranks, const TempDir& temporary) {
  return {{"RANK", std::to_string(rank)},        {"LOCAL_RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(ranks)}, {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
          {"MASTER_ADDR", "127.0.0.1"},          {"MASTER_PORT", "29500"},
          {"TMPDIR", temporary.path()},          {"COL_TIMEOUT", "20s"}};
}

// Four ranks of torchrun on two hosts, which are this one in truth. Rank 0 is found by COL_RDZV_ENDPOINT.
Variables of_two_hosts(int rank, const TempDir& temporary, int port) {
  Variables values = torchrun(rank, 4, temporary);
  values["LOCAL_RANK"] = std::to_string(rank % 2);
  values["LOCAL_WORLD_SIZE"] = "2";
  values["GROUP_RANK"] = std::to_string(rank / 2);
  values["GROUP_WORLD_SIZE"] = "2";
  values["COL_RDZV_ENDPOINT"] = "127.0.0.1:" + std::to_string(port);
  return values;
}

std::optional<col::Error> error_with(const Variables& values) {
  const Environment environment(values);
  try {
    col::ContextSpec::from_environment();
  } catch (const col::Error& error) {
    return error;
  }
  return std::nullopt;
}

// A group of the world that `spec` describes, over a backend that moves nothing.
col::Group make_world(col::Context& context) {
  return context.init_group(
      {.rank = context.spec().rank, .world_size = context.spec().world_size, .backend_name = "stuck"});
}

}  // namespace

TEST_CASE("adopt: ranks of torchrun make one world, twice, and leave nothing", "[adopt]") {
  const TempDir temporary;
  col::test::register_stuck_backend();
  const auto outcomes = col::test::run_processes(4, [&](int rank, col::Context&) {
    set(torchrun(rank, 4, temporary));
    col::Context context(col::ContextSpec::from_environment());
    const col::ContextSpec& spec = context.spec();
    expect(spec.launcher == "torchrun" && spec.rank == rank && spec.world_size == 4);
    expect(spec.control != nullptr && spec.control->local_ranks() == 4 && !spec.job_id.empty());
    expect(make_world(context).size() == 4);
    // All contexts of a process are in the same place.
    expect(col::ContextSpec::from_environment().store == spec.store);
    context.finalize();
    expect(make_world(context).size() == 4);
    context.finalize();
  });
  col::test::check_all_good(outcomes);
  CHECK(fs::is_empty(temporary.path()));
}

TEST_CASE("adopt: a rank that is killed is noticed by the others, and the last of them cleans up", "[adopt]") {
  const TempDir temporary;
  col::test::register_stuck_backend();
  const auto outcomes = col::test::run_processes(3, [&](int rank, col::Context&) {
    set(torchrun(rank, 3, temporary));
    col::Context context(col::ContextSpec::from_environment());
    col::Group world = make_world(context);
    if (rank == 1) kill(getpid(), SIGKILL);
    world.barrier();
  });
  CHECK(outcomes[1].signal == SIGKILL);
  col::test::check_ended(outcomes, {ErrorCode::peer_lost, 1, {}}, {0, 2});
  CHECK(fs::is_empty(temporary.path()));
}

TEST_CASE("adopt: ranks of two hosts make one world without a store, twice, and leave nothing", "[adopt]") {
  const TempDir temporary;
  col::test::register_stuck_backend();
  const int port = col::test::free_port();
  const auto outcomes = col::test::run_processes(4, [&](int rank, col::Context&) {
    set(of_two_hosts(rank, temporary, port));
    col::Context context(col::ContextSpec::from_environment());
    const col::ContextSpec& spec = context.spec();
    expect(spec.launcher == "torchrun" && spec.rank == rank && spec.world_size == 4);
    // Each host has a page of its own.
    expect(spec.local_rank == rank % 2 && spec.local_world_size == 2);
    expect(spec.control != nullptr && spec.control->local_ranks() == 2 && !spec.job_id.empty());
    expect(col::ContextSpec::from_environment().store == spec.store);
    for (int round = 0; round < 3; ++round) {
      expect(make_world(context).size() == 4);
      if (round == 0) {
        expect(spec.control->record(0).read().rank == rank / 2 * 2);
        expect(spec.control->record(1).read().rank == rank / 2 * 2 + 1);
      }
      context.finalize();
    }
  });
  col::test::check_all_good(outcomes);
  CHECK(fs::is_empty(temporary.path()));
  col::StoreServer free_again({.host = "127.0.0.1", .port = port, .token = "t"});
}

TEST_CASE("adopt: ranks of two hosts end without finalize, one is killed, and none hangs", "[adopt][rest]") {
  const TempDir temporary;
  col::test::register_stuck_backend();
  const int port = col::test::free_port();
  const auto start = std::chrono::steady_clock::now();
  const auto outcomes = col::test::run_processes(4, [&](int rank, col::Context&) {
    set(of_two_hosts(rank, temporary, port));
    // Nobody destroys it, as that of a process.
    auto* const context = new col::Context(col::ContextSpec::from_environment());
    make_world(*context);
    if (rank == 3) kill(getpid(), SIGKILL);
    std::exit(0);
  });
  INFO(col::test::show(outcomes));
  CHECK(std::chrono::steady_clock::now() - start < col::test::kPrompt);
  CHECK(outcomes[3].signal == SIGKILL);
  for (const int rank : {0, 1, 2}) CHECK(outcomes[static_cast<std::size_t>(rank)].signal == 0);
}

TEST_CASE("adopt: a rank that never comes is a timeout that names it and the variables that were believed", "[adopt]") {
  const TempDir temporary;
  Variables values = torchrun(1, 2, temporary);
  values["COL_TIMEOUT"] = "200ms";
  const Environment environment(values);
  col::test::register_stuck_backend();
  {
    col::Context context(col::ContextSpec::from_environment());
    try {
      make_world(context);
      FAIL("no error");
    } catch (const col::Error& error) {
      CHECK(error.code() == ErrorCode::timeout);
      CHECK(error.group() == "default");
      CHECK(error.message().find("rank 0 ") != std::string::npos);
      CHECK(error.message().find("rank 1 of 2 by torchrun's variables: WORLD_SIZE=2, RANK=1") != std::string::npos);
    }
  }
  CHECK(fs::is_empty(temporary.path()));
}

TEST_CASE("adopt: a forked process is not the rank that its parent is", "[adopt]") {
  const TempDir temporary;
  const Environment environment(torchrun(0, 2, temporary));
  const col::Context context(col::ContextSpec::from_environment());
  const auto outcomes = col::test::run_processes(1, [](int, col::Context&) { col::ContextSpec::from_environment(); });
  CHECK(outcomes[0].code == ErrorCode::not_initialized);
  CHECK(outcomes[0].text.find("start it with an environment of its own") != std::string::npos);
  const auto others = col::test::run_processes(2, [&](int rank, col::Context&) {
    set(torchrun(rank, 2, temporary));
    set({{"MASTER_PORT", "29501"}});  // a job of their own
    col::test::register_stuck_backend();
    col::Context own(col::ContextSpec::from_environment());
    expect(make_world(own).size() == 2);
  });
  col::test::check_all_good(others);
  CHECK_FALSE(fs::is_empty(temporary.path()));
}

TEST_CASE("adopt: a world of one needs no directory", "[adopt]") {
  const TempDir temporary;
  const Environment environment(torchrun(0, 1, temporary));
  const col::ContextSpec spec = col::ContextSpec::from_environment();
  CHECK(spec.launcher == "torchrun");
  CHECK(spec.world_size == 1);
  CHECK(spec.store == nullptr);
  CHECK(fs::is_empty(temporary.path()));
}

TEST_CASE("adopt: a rank 0 on another host that never comes is a timeout that says where it was looked for",
          "[adopt]") {
  const TempDir temporary;
  Variables values = of_two_hosts(2, temporary, col::test::free_port());
  values["COL_TIMEOUT"] = "300ms";
  const Environment environment(values);
  col::test::register_stuck_backend();
  {
    col::Context context(col::ContextSpec::from_environment());
    try {
      make_world(context);
      FAIL("no error");
    } catch (const col::Error& error) {
      CHECK(error.code() == ErrorCode::timeout);
      CHECK(error.message().find("rank 0 ") != std::string::npos);
      CHECK(error.message().find(values["COL_RDZV_ENDPOINT"]) != std::string::npos);
      CHECK(error.message().find("rank 2 of 4 by torchrun's variables") != std::string::npos);
    }
  }
  CHECK(fs::is_empty(temporary.path()));
}

TEST_CASE("adopt: several hosts need to know where rank 0 is, or a store", "[adopt]") {
  const TempDir temporary;
  Variables values = torchrun(0, 4, temporary);
  values["LOCAL_WORLD_SIZE"] = "2";
  values.erase("MASTER_ADDR");
  auto error = error_with(values);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::unavailable);
  CHECK(error->message().find("LOCAL_WORLD_SIZE=2 of WORLD_SIZE=4") != std::string::npos);
  CHECK(error->message().find("COL_RDZV_ENDPOINT=host:port") != std::string::npos);
  CHECK(fs::is_empty(temporary.path()));
  error = error_with({{"JOB_COMPLETION_INDEX", "99999"}, {"COL_WORLD_SIZE", "100000"}});
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::unavailable);

  values["COL_STORE"] = "file://" + temporary / "store";
  const Environment environment(values);
  const col::ContextSpec spec = col::ContextSpec::from_environment();
  CHECK(spec.world_size == 4);
  CHECK(spec.local_world_size == 2);
  REQUIRE(spec.control != nullptr);
  CHECK(spec.control->local_ranks() == 2);
  CHECK(spec.store != nullptr);
}

TEST_CASE("adopt: COL_STORE is used as it is", "[adopt]") {
  const TempDir temporary;
  Variables values = torchrun(1, 2, temporary);
  values["COL_STORE"] = "file://" + temporary / "store";
  values["COL_JOB_ID"] = "mine";
  const Environment environment(values);
  const col::ContextSpec spec = col::ContextSpec::from_environment();
  CHECK(spec.job_id == "mine");
  CHECK(fs::exists(temporary / "store/keys"));
  CHECK_FALSE(fs::exists(temporary / "col-" + std::to_string(geteuid())));
}

TEST_CASE("adopt: COL_* goes before all others, and is as strict as ever", "[adopt]") {
  const TempDir temporary;
  Variables values = torchrun(1, 2, temporary);
  values["COL_RANK"] = "0";
  auto error = error_with(values);
  REQUIRE(error);
  CHECK(error->message().find("COL_WORLD_SIZE is not") != std::string::npos);
  values["COL_WORLD_SIZE"] = "1";
  const Environment environment(values);
  const col::ContextSpec spec = col::ContextSpec::from_environment();
  CHECK(spec.launcher == "colrun");
  CHECK(spec.world_size == 1);
}

TEST_CASE("adopt: variables of half a launcher make a world of one, and a warning", "[adopt]") {
  const Environment environment({{"RANK", "1"}, {"WORLD_SIZE", "3"}});
  const col::core::log::Capture capture(col::core::log::Level::warn);
  const col::ContextSpec spec = col::ContextSpec::from_environment();
  CHECK(spec.world_size == 1);
  CHECK(spec.launcher.empty());
  CHECK(capture.text().find("LOCAL_RANK is not") != std::string::npos);
}
