// Where ranks are, and how they meet.
#include <sched.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "colbench/machine/latency.hpp"
#include "colbench/rank/start_line.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

using namespace col;
using namespace col::colbench;
using namespace std::chrono_literals;
using col::test::expect;
using col::test::run_processes;
using col::test::run_threads;

namespace {

Whereabouts at(const std::string& boot, const std::string& network, std::initializer_list<int> cpus) {
  Whereabouts one;
  boot.copy(one.boot.data(), boot.size());
  network.copy(one.network_namespace.data(), network.size());
  CPU_ZERO(&one.cpus);
  for (const int cpu : cpus) CPU_SET(static_cast<unsigned>(cpu), &one.cpus);
  one.cpu_count = static_cast<int>(cpus.size());
  return one;
}

Group group_of_all(Context& context, int rank, int ranks) {
  return context.init_group({.rank = rank, .world_size = ranks, .backend = Backend::shm});
}

std::size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

}  // namespace

TEST_CASE("whereabouts: nodes are what shares a host and its network", "[colbench]") {
  const std::vector<Whereabouts> ranks = {at("a", "net:1", {0}), at("b", "net:1", {0}), at("a", "net:2", {0}),
                                          at("a", "net:1", {0}), at("b", "net:1", {0})};
  CHECK(nodes_of(ranks) == std::vector<int>{0, 1, 2, 0, 1});
  CHECK(nodes_of(std::vector<Whereabouts>(3)) == std::vector<int>{0, 0, 0});
  const Whereabouts own = own_whereabouts();
  CHECK(own.boot[0] != '\0');
  CHECK(own.network_namespace[0] != '\0');
  CHECK(share_host(own, own_whereabouts()));
  CHECK(share_processes(own, own_whereabouts()));
  Whereabouts hidden = own;
  hidden.pid_namespace[0] ^= 1;
  CHECK(share_host(own, hidden));
  CHECK_FALSE(share_processes(own, hidden));
}

TEST_CASE("whereabouts: cores of one host are counted once, those of several add up", "[colbench]") {
  CHECK(cpus_of(std::vector{at("a", "1", {0, 1}), at("a", "1", {0, 1})}) == 2);
  CHECK(cpus_of(std::vector{at("a", "1", {0}), at("a", "2", {1})}) == 2);
  CHECK(cpus_of(std::vector{at("a", "1", {0, 1}), at("b", "1", {0, 1})}) == 4);
  Whereabouts many = at("a", "1", {});
  many.cpu_count = 2048;  // more than fit into a set
  CHECK(cpus_of(std::vector{many, many}) == 2048);
  CHECK(cpus_of({}) == 1);
}

TEST_CASE("start line: ranks of one host have a common start, and leave nothing in /dev/shm", "[colbench]") {
  const auto files = [] {
    std::size_t found = 0;
    for (const auto& file : std::filesystem::directory_iterator("/dev/shm"))
      found += file.path().filename().string().starts_with("colbench") ? 1 : 0;
    return found;
  };
  const std::size_t before = files();
  const auto outcomes = run_processes(3, [&](int rank, Context& context) {
    Group group = group_of_all(context, rank, 3);
    StartLine line(group, context.spec().control, false, group.allgather_object(own_whereabouts()));
    expect(line.is_window(), line.why_barrier());
    expect(files() == before, "the page has a name");
    for (int i = 0; i < 5; ++i) {
      const std::int64_t start = line.wait(10s);
      expect(start <= now_ns());
      for (const std::int64_t other : group.allgather_object(start)) expect(other == start, "another start");
    }
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("start line: where the page cannot be had it says why, and ranks meet at barriers", "[colbench]") {
  const auto outcomes = run_threads(3, [&](int rank, Context& context) {
    Group group = group_of_all(context, rank, 3);
    std::vector<Whereabouts> ranks = group.allgather_object(own_whereabouts());
    ranks[2].pid_namespace[0] ^= 1;
    StartLine line(group, context.spec().control, false, ranks);
    expect(!line.is_window());
    expect(line.why_barrier() == "the ranks are in several process namespaces", line.why_barrier());
    expect(line.wait(10s) <= now_ns());
    ranks[2].boot[0] ^= 1;
    const StartLine apart(group, context.spec().control, false, ranks);
    expect(!apart.is_window() && apart.why_barrier().empty(), apart.why_barrier());
    const StartLine asked(group, context.spec().control, true, group.allgather_object(own_whereabouts()));
    expect(!asked.is_window() && asked.why_barrier().empty(), asked.why_barrier());
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("whereabouts: the cores of all that share a host", "[colbench]") {
  const auto cores = [](const std::vector<Whereabouts>& ranks) {
    const cpu_set_t all = cores_beside(ranks, ranks.front());
    std::vector<int> found;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(static_cast<unsigned>(cpu), &all)) found.push_back(cpu);
    return found;
  };
  CHECK(cores({at("a", "1", {0, 1}), at("b", "1", {2}), at("a", "2", {5})}) == std::vector<int>{0, 1, 5});
  CHECK(cores({at("a", "1", {}), at("b", "1", {2})}).empty());
}

// It gives up, and is 0, where a thread gets no processor in time; a busy machine has one for it sooner or later.
template <class Measure>
bool measures(Measure measure) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (measure() <= 0) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

TEST_CASE("latency: a bound thread measures on all cores, and is bound again afterwards", "[colbench][rest]") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
  std::thread([&] {
    cpu_set_t now;
    CHECK(::sched_setaffinity(0, sizeof one, &one) == 0);
    {
      const OnCores all(before);
      CHECK((::sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &before)));
      if (CPU_COUNT(&before) > 1) CHECK(measures([] { return measure_hand_over(); }));
    }
    CHECK((::sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &one)));
    CPU_ZERO(&now);
    const OnCores nothing(now);
    CHECK((::sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &one)));
  }).join();
}

TEST_CASE("latency: two threads on one core take turns", "[colbench][rest]") {
  CHECK(measures([] { return measure_switch(); }));
}

TEST_CASE("latency: turns that do not come in time are not waited for, nor is a core that there is not", "[colbench]") {
  const int cpu = ::sched_getcpu();
  const std::size_t before = threads_of_this_process();
  for (int i = 0; i < 20; ++i) shortest_turn(cpu, cpu, 0ns);
  CHECK(shortest_turn(cpu, CPU_SETSIZE - 1, 2s) == 0);
  // Whoever still was at it has stopped.
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (threads_of_this_process() > before && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  CHECK(threads_of_this_process() <= before);
}
