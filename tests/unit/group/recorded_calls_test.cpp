// What the flight recorder has of calls that come again: the words of each are made once.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include <col/group.hpp>

#include "support/catch.hpp"
#include "support/outcomes.hpp"
#include "support/soon.hpp"

using namespace col::test;

TEST_CASE("recorded calls: each that comes again has the label of its time, and its own details", "[group]") {
  const std::vector<std::string> labels = {"", "", "forward", "forward", "backward", "", "forward"};
  std::shared_ptr<col::ControlPage> page;
  std::mutex mutex;
  const auto body = [&](int rank, col::Context& context) {
    col::Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = "shm"});
    std::vector<float> in(3, 1), out(3), later(3);
    std::vector<std::int64_t> own(5, 2), sum(5);
    for (const std::string& label : labels) {
      group.annotate(label);
      group.allreduce(in, out);
      group.reduce(own, sum, {.root = 1});
      group.iallreduce(in, later).wait();  // another buffer: each is kept by its own
    }
  };
  const auto outcomes = run_threads(2, body, {.adapt = [&](col::ContextSpec& spec) {
                                      const std::lock_guard lock(mutex);
                                      page = spec.control;
                                    }});
  INFO(show(outcomes));
  REQUIRE(all_good(outcomes));
  for (int rank = 0; rank < 2; ++rank) {
    const std::vector<col::RecordedCall> calls = page->record(rank).history().calls;
    REQUIRE(calls.size() == 4 * labels.size());  // one that is started and ends later is there twice
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const col::RecordedCall& call = calls[i];
      const bool is_reduce = i % 4 == 1;
      INFO("rank " << rank << ", entry " << i);
      CHECK(call.op == (is_reduce ? col::Collective::reduce : col::Collective::allreduce));
      CHECK(call.ended == (i % 4 != 2));
      CHECK(call.sequence == 3 * (i / 4) + (i % 4 < 3 ? i % 4 : 2) + 1);
      CHECK(call.names.label == labels[i / 4]);
      CHECK(call.names.reduction == "sum");
      CHECK(call.names.algorithm == "shared");
      CHECK(call.details.dtype == (is_reduce ? col::DType::int64 : col::DType::float32));
      CHECK(call.details.count == (is_reduce ? 5U : 3U));
      CHECK(call.details.partner == (is_reduce ? 1 : -1));
    }
  }
}

TEST_CASE("recorded calls: one that comes again is traced as long as that is wanted", "[group]") {
  const auto outcomes = run_threads(2, [](int rank, col::Context& context) {
    col::Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = "shm"});
    std::vector<float> data(3, 1);
    std::uint64_t calls = 0;
    for (const bool wanted : {false, false, true, false, true, true, false}) {
      group.record_trace(wanted);
      group.allreduce(data);
      ++calls;
      const std::vector<col::TraceEntry> trace = group.trace();
      expect(trace.size() == (wanted ? 1U : 0U), "entries: " + std::to_string(trace.size()));
      for (const col::TraceEntry& entry : trace)
        expect(entry.operation == calls && entry.collective == col::Collective::allreduce, "another call");
    }
  });
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

TEST_CASE("recorded calls: what ends beside a wait of another group leaves the record to that wait", "[group]") {
  std::shared_ptr<col::ControlPage> page;
  std::mutex mutex;
  const auto body = [&](int rank, col::Context& context) {
    col::Group beside = context.init_group({.name = "beside", .rank = rank, .world_size = 2, .backend_name = "shm"});
    col::Group waits = context.init_group({.name = "waits", .rank = rank, .world_size = 2, .backend_name = "shm"});
    std::vector<float> in(3, 1), out(3), data(3, 1);
    for (int i = 0; i < 3; ++i) beside.iallreduce(in, out).wait();  // it comes again
    if (rank == 0) {
      col::Work work = beside.iallreduce(in, out);
      waits.allreduce(data);
      work.wait();
      return;
    }
    const col::RankRecord& other = page->record(0);
    expect(soon([&] { return other.read().group == "waits"; }));
    beside.iallreduce(in, out).wait();
    const auto is_fourth = [](const col::RecordedCall& call) {
      return call.group == "beside" && call.sequence == 4 && call.ended;
    };
    expect(soon([&] { return std::ranges::any_of(other.history().calls, is_fourth); }));
    const col::RankActivity activity = other.read();
    expect(activity.group == "waits");
    expect(activity.state != col::RankActivity::State::joined);
    waits.allreduce(data);
  };
  const auto outcomes = run_threads(2, body, {.adapt = [&](col::ContextSpec& spec) {
                                      const std::lock_guard lock(mutex);
                                      page = spec.control;
                                    }});
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

TEST_CASE("recorded calls: the record tells of what a rank waits for, not of what it started last", "[group]") {
  const bool has_budget = GENERATE(false, true);
  std::shared_ptr<col::ControlPage> page;
  std::mutex mutex;
  const auto body = [&](int rank, col::Context& context) {
    col::Group first = context.init_group({.name = "first", .rank = rank, .world_size = 2, .backend_name = "shm"});
    col::Group second = context.init_group({.name = "second", .rank = rank, .world_size = 2, .backend_name = "shm"});
    std::vector<float> in(3, 1), out(3), sent(2, 1), received(2);
    if (rank == 0) {
      col::Work oldest = first.iallreduce(in, out);
      col::Work send = second.isend(sent, 1), receive = second.irecv(received, 1);
      const auto wait = [&](col::Work& work) {
        if (has_budget) return static_cast<void>(work.wait_for(kDeadline));
        work.wait();
      };
      wait(oldest);
      wait(receive);
      send.wait();
      return;
    }
    const col::RankRecord& other = page->record(0);
    const auto waits_in = [&](const std::string& group) {
      const col::RankActivity activity = other.read();
      return activity.group == group && activity.state != col::RankActivity::State::joined;
    };
    expect(soon([&] { return waits_in("first"); }));
    first.iallreduce(in, out).wait();
    expect(soon([&] { return waits_in("second"); }));
    second.isend(sent, 0).wait();
    second.irecv(received, 0).wait();
  };
  const auto outcomes = run_threads(2, body, {.adapt = [&](col::ContextSpec& spec) {
                                      const std::lock_guard lock(mutex);
                                      page = spec.control;
                                    }});
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

TEST_CASE("recorded calls: of those that were started together, the one that is waited for is told of, and timed",
          "[group]") {
  std::shared_ptr<col::ControlPage> page;
  std::mutex mutex;
  const auto body = [&](int rank, col::Context& context) {
    col::Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = "shm"});
    std::vector<float> first(3, 1), second(3, 1);
    const auto waits = [&] {
      const col::RankActivity activity = page->record(0).read();
      return activity.sequence == 1 && activity.state == col::RankActivity::State::waiting;
    };
    if (rank == 1) expect(soon(waits));
    col::Coalescing scope = group.coalesce();
    std::ignore = group.iallreduce(first, first);
    std::ignore = group.iallreduce(second, second);
    scope.end().wait();
  };
  const auto outcomes = run_threads(2, body, {.adapt = [&](col::ContextSpec& spec) {
                                      const std::lock_guard lock(mutex);
                                      page = spec.control;
                                    }});
  INFO(show(outcomes));
  REQUIRE(all_good(outcomes));
  const std::vector<col::TimedCall> calls = page->record(0).times_since(0).calls;
  CHECK(std::ranges::any_of(calls, [](const col::TimedCall& call) { return call.sequence == 1 && call.took_ns > 0; }));
}
