// What is in flight in one group moves on while the process waits for something in another. Issue 17, items 1, 3 and 4.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

using col::ErrorCode;
using col::Group;
using col::Work;
using col::test::error_of;
using col::test::expect;
using namespace std::chrono_literals;

namespace {

// Longer than what any channel keeps for a receiver that does not come.
constexpr std::size_t kLong = std::size_t{1} << 21;

struct Pair {
  const char* name;
  std::string first, second;
};

std::vector<Pair> pairs() {
  std::vector<Pair> all{{"both over shared memory", "shm", "shm"}};
  if (col::gloo_available()) {
    all.push_back({"both over Gloo", "gloo", "gloo"});
    all.push_back({"shared memory and Gloo", "shm", "gloo"});
    all.push_back({"Gloo and shared memory", "gloo", "shm"});
  }
  return all;
}

using TwoGroups = std::function<void(Group& a, Group& b)>;

// `body` with ranks as threads and as processes, over each pair of backends.
void on_two_groups(int ranks, const TwoGroups& body) {
  for (const Pair& pair : pairs()) {
    const auto of_rank = [&](int rank, col::Context& context) {
      Group a = context.init_group({.name = "a", .rank = rank, .world_size = ranks, .backend_name = pair.first});
      Group b = context.init_group({.name = "b", .rank = rank, .world_size = ranks, .backend_name = pair.second});
      body(a, b);
      a.barrier();
      b.barrier();
      context.finalize();
    };
    const col::test::RankOptions options{.timeout = 8s};
    for (const bool processes : {false, true}) {
      const auto outcomes = processes ? col::test::run_processes(ranks, of_rank, options)
                                      : col::test::run_threads(ranks, of_rank, options);
      INFO(pair.name << (processes ? ", processes\n" : ", threads\n") << col::test::show(outcomes));
      CHECK(col::test::all_good(outcomes));
    }
  }
}

std::vector<int> filled(int value, std::size_t count = kLong) {
  return std::vector<int>(count, value);
}

// With an operator that fails: at once, when the data of the others is there already, or in the wait.
Work started(Group& group, const std::vector<int>& in, std::vector<int>& out, const col::Op& op) {
  try {
    return group.iallreduce(in, out, {.op = op});
  } catch (const col::Error&) {
    return {};
  }
}

void expect_all(const std::vector<int>& data, int value) {
  for (const int each : data) expect(each == value, fmt::format("{} instead of {}", each, value));
}

}  // namespace

TEST_CASE("across groups: Works of two groups are waited for in another order by each rank", "[group][async]") {
  on_two_groups(3, [](Group& a, Group& b) {
    const auto in_a = filled(1), in_b = filled(2);
    auto sum_a = filled(0), sum_b = filled(0);
    Work of_a = a.iallreduce(in_a, sum_a), of_b = b.iallreduce(in_b, sum_b);
    if (a.rank() == 1) std::swap(of_a, of_b);
    of_a.wait();
    of_b.wait();
    expect_all(sum_a, 3);
    expect_all(sum_b, 6);
  });
}

TEST_CASE("across groups: one rank calls a blocking collective elsewhere before it waits", "[group][async]") {
  on_two_groups(3, [](Group& a, Group& b) {
    const auto in = filled(1);
    auto sum = filled(0), other = filled(5, 30000);
    Work work = a.iallreduce(in, sum);
    if (a.rank() != 0) work.wait();
    b.barrier();
    b.allreduce(other);
    work.wait();
    expect_all(sum, 3);
    expect_all(other, 15);
  });
}

TEST_CASE("across groups: a message is on its way while its sender is in a barrier elsewhere", "[group][async]") {
  on_two_groups(2, [](Group& a, Group& b) {
    auto data = filled(a.rank() + 1);
    Work work = a.rank() == 0 ? a.isend(data, 1) : Work();
    if (a.rank() == 1) a.recv(data, 0);
    b.barrier();
    work.wait();
    expect_all(data, 1);
  });
}

TEST_CASE("across groups: a rank that looks again and again in one group serves the other", "[group][async]") {
  on_two_groups(2, [](Group& a, Group& b) {
    const auto in = filled(1);
    auto sum_a = filled(0), sum_b = filled(0);
    Work of_a = a.iallreduce(in, sum_a);
    Work of_b = a.rank() == 0 ? b.iallreduce(in, sum_b) : Work();
    if (a.rank() == 0) {
      const col::Deadline until = col::Deadline::after(8s);
      while (!of_b.test()) expect(!until.expired(), "the other does not come to b");
    } else {
      of_a.wait();
      of_b = b.iallreduce(in, sum_b);
    }
    of_a.wait();
    of_b.wait();
    expect_all(sum_a, 2);
    expect_all(sum_b, 2);
  });
}

TEST_CASE("across groups: a group is made while another has something in flight", "[group][async]") {
  on_two_groups(2, [](Group& a, Group& b) {
    const auto in = filled(1);
    auto sum = filled(0);
    Work work = a.iallreduce(in, sum);
    if (a.rank() == 1) work.wait();
    Group c = b.split(0, b.rank());
    c.barrier();
    work.wait();
    expect_all(sum, 2);
  });
}

TEST_CASE("across groups: an error stays in its group", "[group][async]") {
  const auto outcomes = col::test::run_threads(2, [](int rank, col::Context& context) {
    Group a = context.init_group({.name = "a", .rank = rank, .world_size = 2, .backend_name = "shm"});
    Group b = context.init_group({.name = "b", .rank = rank, .world_size = 2, .backend_name = "shm"});
    const auto in = filled(1);
    auto sum = filled(0), other = filled(1, 30000);
    const col::Op bad = col::Op::user([](auto&&...) { throw std::runtime_error("no such sum"); }, true);
    Work work = started(a, in, sum, bad);
    for (int i = 0; i < 20; ++i) b.allreduce(other);
    const auto error = error_of([&] {
      work.wait();
      a.barrier();
    });
    expect(std::string(error.what()).find("group 'a'") != std::string::npos, error.what());
    b.allreduce(other);
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("across groups: many Works are dropped, and their buffers freed after a barrier", "[group][async]") {
  on_two_groups(3, [](Group& a, Group& b) {
    for (Group* group : {&a, &b}) {
      for (int round = 0; round < 3; ++round) {
        std::vector<std::unique_ptr<std::vector<int>>> buffers;
        for (int i = 0; i < 16; ++i) {
          buffers.push_back(std::make_unique<std::vector<int>>(filled(i, 40000)));
          std::ignore = group->iallreduce(*buffers.back(), *buffers.back());
        }
        group->barrier();
        for (int i = 0; i < 16; ++i) expect_all(*buffers[static_cast<std::size_t>(i)], 3 * i);
      }
    }
  });
}

TEST_CASE("across groups: another thread may ask what would run while a call is under way", "[group]") {
  col::test::threads_on_each_backend(2, [](Group& group, col::Context&) {
    std::atomic<bool> end{false};
    std::string trouble;
    {
      std::jthread asking([&] {
        try {
          while (!end) {
            expect(!group.explain(col::Collective::allreduce, 4096).empty());
            expect(!group.algorithms(col::Collective::allreduce).empty());
          }
        } catch (const std::exception& error) {
          trouble = error.what();
        }
      });
      auto data = filled(1, 5000);
      try {
        for (int i = 0; i < 300; ++i) group.allreduce(data, {.op = col::ReduceOp::max});
      } catch (...) {
        end = true;
        throw;
      }
      end = true;
    }
    expect(trouble.empty(), trouble);
  });
}

TEST_CASE("across groups: a reduction that uses the group which runs it is told so", "[group][async]") {
  for (const char* mode : {"calls", "thread"}) {
    const col::test::Setting setting("COL_PROGRESS", mode);
    const auto outcomes = col::test::run_threads(2, [](int rank, col::Context& context) {
      Group a = context.init_group({.name = "a", .rank = rank, .world_size = 2, .backend_name = "shm"});
      Group b = context.init_group({.name = "b", .rank = rank, .world_size = 2, .backend_name = "shm"});
      const auto in = filled(1, 100000);
      auto sum = filled(0, 100000);
      Work earlier = a.ibarrier();
      const col::Op op =
          col::Op::user([&earlier](const void*, const void*, void*, std::size_t, col::DType) { earlier.test(); }, true);
      Work work = started(a, in, sum, op);
      b.barrier();
      const auto error = error_of([&] {
        work.wait();
        a.barrier();
      });
      expect(std::string(error.what()).find("group") != std::string::npos, error.what());
    });
    INFO(mode << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}

TEST_CASE("across groups: a reduction that looks at a Work of its group does not wait for itself", "[group][async]") {
  for (const bool asks_for_error : {false, true}) {
    const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
      Group a = context.init_group({.name = "a", .rank = rank, .world_size = 2, .backend_name = "shm"});
      const auto in = filled(1, 100000);
      auto sum = filled(0, 100000);
      Work earlier = a.ibarrier();
      earlier.wait();
      const col::Op op = col::Op::user(
          [&](const void*, const void*, void*, std::size_t, col::DType) {
            if (asks_for_error)
              std::ignore = earlier.error();
            else
              std::ignore = earlier.source();
          },
          true);
      const auto error = error_of([&] { a.allreduce(in, sum, {.op = op}); });
      expect(std::string(error.what()).find("in use") != std::string::npos, error.what());
    });
    INFO(col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}

TEST_CASE("across groups: a forked child neither hangs nor serves its parent's groups", "[group][async]") {
  const auto outcomes = col::test::run_processes(2, [](int rank, col::Context& context) {
    Group a = context.init_group({.name = "a", .rank = rank, .world_size = 2, .backend_name = "shm"});
    void* const memory = a.alloc(4096);
    const auto in = filled(1);
    auto sum = filled(0);
    Work work = a.iallreduce(in, sum);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(10);
      const bool good = work.source() == -1 && !work.error();
      col::free(memory);
      ::_exit(good ? 0 : 1);
    }
    int status = 0;
    expect(::waitpid(child, &status, 0) == child && status == 0, fmt::format("the child ended with {:#x}", status));
    work.wait();
    expect_all(sum, 2);
    col::free(memory);
    context.finalize();
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}
