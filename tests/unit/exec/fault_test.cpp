#include "exec/fault.hpp"

#include <csignal>
#include <cstdlib>

#include <fmt/format.h>

#include <col/channel.hpp>
#include <col/col.hpp>

#include "support/catch.hpp"
#include "support/ranks.hpp"

using col::exec::Fault;
using Kind = Fault::Kind;

namespace {

std::string refusal(std::string_view text) {
  try {
    Fault::parse(text);
  } catch (const col::Error& error) {
    CHECK(error.code() == col::ErrorCode::invalid_argument);
    return error.message();
  }
  return "";
}

// One rank is to be killed in the third allreduce, at every step in turn.
std::vector<col::test::Outcome> kill_at(int step, const char* backend, const char* algorithm) {
  ::setenv("COL_FAULT", fmt::format("kill:rank=1,op=3,step={}", step).c_str(), 1);
  auto outcomes = col::test::run_processes(3, [&](int rank, col::Context& context) {
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 3, .backend_name = backend});
    std::vector<float> data(1000, 1.0F);
    for (int i = 0; i < 5; ++i) group.allreduce(data, {.algorithm = algorithm});
    context.finalize();
  });
  ::unsetenv("COL_FAULT");
  return outcomes;
}

}  // namespace

TEST_CASE("COL_FAULT: the text says who, when and what", "[exec]") {
  const Fault kill = Fault::parse("kill:rank=2,op=17,step=3");
  CHECK(kill.kind == Kind::kill);
  CHECK(kill.rank == 2);
  CHECK(kill.op == 17);
  CHECK(kill.step == 3);
  const Fault delay = Fault::parse("delay:rank=0,ms=20,group=default");
  CHECK(delay.kind == Kind::delay);
  CHECK(delay.delay == std::chrono::milliseconds(20));
  CHECK(delay.op == 1);
  CHECK(delay.group == "default");
  CHECK(Fault::parse("exit:rank=1,code=7").exit_code == 7);
  CHECK(Fault::parse("stop:rank=1").kind == Kind::stop);
  const Fault start = Fault::parse("start:op=9223372036854775807,group=dp");
  CHECK(start.kind == Kind::start);
  CHECK(start.op == 9223372036854775807U);
  CHECK(start.group == "dp");
}

TEST_CASE("COL_FAULT: a slip is refused and the form is shown", "[exec]") {
  for (const char* text : {"", "explode:rank=1", "kill", "kill:op=1", "kill:rank=x", "kill:rank=-1", "kill:rank",
                           "delay:rank=1", "kill:rank=1,ms=5", "kill:rank=99999999999999999999", "start", "start:op=0",
                           "start:rank=1,op=5", "start:op=9223372036854775808"}) {
    INFO(text);
    CHECK(refusal(text).find("kill:rank=2,op=17,step=3") != std::string::npos);
  }
}

TEST_CASE("COL_FAULT: it is meant for one rank of one group", "[exec]") {
  std::optional<Fault> fault = Fault::parse("kill:rank=2,group=dp");
  CHECK(col::exec::FaultHook::meant(fault, 2, "dp") == &*fault);
  CHECK(col::exec::FaultHook::meant(fault, 1, "dp") == nullptr);
  CHECK(col::exec::FaultHook::meant(fault, 2, "tp") == nullptr);
  CHECK(col::exec::FaultHook::meant(std::nullopt, 2, "dp") == nullptr);
}

TEST_CASE("COL_FAULT: a rank killed at any step of a plan is named by all survivors within a second", "[exec]") {
  for (const char* backend : {"shm", "gloo"}) {
    const auto* factory = col::find_backend(backend);
    if (factory == nullptr || factory->unavailable_reason()) continue;
    for (const int step : {0, 1, 3, 5}) {
      const auto outcomes = kill_at(step, backend, "ring");
      INFO(backend << ", step " << step << "\n" << show(outcomes));
      CHECK(outcomes[1].signal == SIGKILL);
      for (const int survivor : {0, 2}) {
        const auto& outcome = outcomes[static_cast<std::size_t>(survivor)];
        CHECK(outcome.code == col::ErrorCode::peer_lost);
        CHECK(outcome.error_rank == 1);
        CHECK(outcome.seconds < col::test::kPromptSeconds);
      }
    }
  }
}

TEST_CASE("COL_FAULT: a group that is to start high counts from there, on all ranks", "[exec]") {
  const std::optional<Fault> start = Fault::parse("start:op=4294967290,group=dp");
  CHECK(col::exec::FaultHook::meant(start, 7, "tp") == nullptr);
  CHECK(col::exec::FaultHook::counted_before(col::exec::FaultHook::meant(start, 7, "dp")) == 4294967289U);
  CHECK(col::exec::FaultHook::counted_before(nullptr) == 0);
  const Fault kill = Fault::parse("kill:rank=2,op=17");
  CHECK(col::exec::FaultHook::counted_before(&kill) == 0);

  ::setenv("COL_FAULT", "start:op=4294967295", 1);
  const auto outcomes = col::test::run_threads(3, [&](int rank, col::Context& context) {
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 3});
    group.record_trace(true);
    for (int i = 0; i < 3; ++i) group.barrier();
    std::vector<std::uint64_t> numbers;
    for (const col::TraceEntry& entry : group.trace()) {
      if (numbers.empty() || numbers.back() != entry.operation) numbers.push_back(entry.operation);
    }
    col::test::expect(numbers == std::vector<std::uint64_t>{4294967295U, 4294967296U, 4294967297U});
  });
  ::unsetenv("COL_FAULT");
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}
