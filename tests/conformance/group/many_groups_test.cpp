// Several groups of a process: overlapping, used by threads, made again and again; and what is in flight in one moves
// on while the process waits for something in another.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("many groups: a process is in several overlapping ones at once", "[group]") {
  threads_on_each_backend(4, [&](int rank, Context& context, const std::string& backend) {
    Group all = context.init_group({.name = "all", .rank = rank, .world_size = 4, .backend_name = backend});
    Group half = context.init_group(
        {.name = fmt::format("half {}", rank / 2), .rank = rank % 2, .world_size = 2, .backend_name = backend});
    if (rank != 3) context.init_group({.name = "third", .rank = 2 - rank, .world_size = 3, .backend_name = backend});
    for (int round = 0; round < 3; ++round) {
      std::vector<int> a{1}, b{rank}, c{1};
      half.allreduce(b);
      all.allreduce(a);
      expect(a[0] == 4 && b[0] == (rank < 2 ? 1 : 5));
      if (rank != 3) col::allreduce(c, {.group = "third"});
      expect(c[0] == (rank == 3 ? 1 : 3));
    }
  });
}

TEST_CASE("many groups: made and destroyed again and again, descriptors stay flat", "[group]") {
  processes_on_each_backend(2, check_good, [&](int rank, Context& context, const std::string& backend) {
    std::size_t after_first = 0;
    for (int i = 0; i < 30; ++i) {
      Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = backend});
      std::vector<int> data{1};
      group.allreduce(data);
      expect(data[0] == 2);
      context.destroy_group("default");
      if (i == 2) after_first = open_descriptors();
    }
    // The store keeps a few for the next wait; one that leaks per group would be 27 more.
    expect(open_descriptors() <= after_first + 5,
           fmt::format("{} descriptors, then {}", after_first, open_descriptors()));
  });
}

// ---- What is in flight in one group, and calls in another

// Longer than what any channel keeps for a receiver that does not come.
constexpr std::size_t kLong = std::size_t{1} << 21;

using TwoGroups = std::function<void(Group& a, Group& b)>;

Body over(const std::string& first, const std::string& second, int ranks, const TwoGroups& body) {
  return [=](int rank, Context& context) {
    Group a = context.init_group({.name = "a", .rank = rank, .world_size = ranks, .backend_name = first});
    Group b = context.init_group({.name = "b", .rank = rank, .world_size = ranks, .backend_name = second});
    body(a, b);
  };
}

// Two ranks, both groups over shared memory.
void over_shm(const TwoGroups& body) {
  check_good(run_threads(2, over("shm", "shm", 2, body)));
}

// `body` with ranks as threads and as processes, over each pair of backends.
void on_two_groups(int ranks, const TwoGroups& body) {
  const std::vector<std::string> backends =
      col::gloo_available() ? std::vector<std::string>{"shm", "gloo"} : std::vector<std::string>{"shm"};
  const auto to_the_end = [&](Group& a, Group& b) {
    body(a, b);
    a.barrier();
    b.barrier();
    Context::current().finalize();
  };
  const RankOptions options{.timeout = kDeadline};
  for (const std::string& first : backends) {
    for (const std::string& second : backends) {
      INFO(first << " and " << second << ", threads, then processes");
      check_good(run_threads(ranks, over(first, second, ranks, to_the_end), options));
      check_good(run_processes(ranks, over(first, second, ranks, to_the_end), options));
    }
  }
}

std::vector<int> filled(int value, std::size_t count = kLong) {
  return std::vector<int>(count, value);
}

// With an operator that fails: at once, when the data of the others is there already, or in the wait.
Work started(Group& group, const std::vector<int>& in, std::vector<int>& out, const Op& op) {
  try {
    return group.iallreduce(in, out, {.op = op});
  } catch (const Error&) {
    return {};
  }
}

void expect_failure(Work& work, Group& group, const std::string& says) {
  const Error error = error_of([&] {
    work.wait();
    group.barrier();
  });
  expect(has(error.what(), says), error.what());
}

void expect_all(const std::vector<int>& data, int value) {
  const auto other = std::find_if(data.begin(), data.end(), [&](int each) { return each != value; });
  if (other != data.end()) expect(false, fmt::format("{} instead of {}", *other, value));
}

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
      const Deadline until = Deadline::after(kDeadline);
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
  over_shm([](Group& a, Group& b) {
    const auto in = filled(1);
    auto sum = filled(0), other = filled(1, 30000);
    const Op bad = Op::user([](auto&&...) { throw std::runtime_error("no such sum"); }, true);
    Work work = started(a, in, sum, bad);
    for (int i = 0; i < 20; ++i) b.allreduce(other);
    expect_failure(work, a, "group 'a'");
    b.allreduce(other);
  });
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
  threads_on_each_backend(2, [](Group& group) {
    std::atomic<bool> end{false};
    std::string trouble;
    {
      std::jthread asking([&] {
        try {
          while (!end) {
            expect(!group.explain(Collective::allreduce, 4096).empty());
            expect(!group.algorithms(Collective::allreduce).empty());
          }
        } catch (const std::exception& error) {
          trouble = error.what();
        }
      });
      auto data = filled(1, 5000);
      try {
        for (int i = 0; i < 300; ++i) group.allreduce(data, {.op = ReduceOp::max});
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
    const Setting setting("COL_PROGRESS", mode);
    INFO(mode);
    over_shm([](Group& a, Group& b) {
      const auto in = filled(1, 100000);
      auto sum = filled(0, 100000);
      const Op op =
          Op::user([&a](const void*, const void*, void*, std::size_t, DType) { a.record_trace(false); }, true);
      Work work = started(a, in, sum, op);
      b.barrier();
      expect_failure(work, a, "group");
    });
  }
}

TEST_CASE("across groups: a reduction may look at Works of its group, and does not wait for itself", "[group][async]") {
  over_shm([&](Group& a, Group&) {
    const auto in = filled(1, 100000);
    auto sum = filled(0, 100000);
    Work earlier = a.ibarrier();
    earlier.wait();
    std::atomic<int> looks{0};
    const Op op = Op::user(
        [&](const void* left, const void* right, void* result, std::size_t count, DType) {
          if (earlier.has_ended() && !earlier.error() && earlier.source() == -1 && earlier.test()) ++looks;
          for (std::size_t i = 0; i < count; ++i)
            static_cast<int*>(result)[i] = static_cast<const int*>(left)[i] + static_cast<const int*>(right)[i];
        },
        true);
    a.allreduce(in, sum, {.op = op});
    expect_all(sum, 2);
    // Ranks share the work between them as they like.
    std::vector<int> all{looks.load()};
    a.allreduce(all);
    expect(all.front() > 0);
  });
}

TEST_CASE("across groups: a forked child neither hangs nor serves its parent's groups", "[group][async]") {
  check_good(run_processes(2, over("shm", "shm", 2, [](Group& a, Group&) {
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
                             expect(::waitpid(child, &status, 0) == child && status == 0,
                                    fmt::format("the child ended with {:#x}", status));
                             work.wait();
                             expect_all(sum, 2);
                             col::free(memory);
                             Context::current().finalize();
                           })));
}

}  // namespace
}  // namespace col::test
