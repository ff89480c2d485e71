// --bind-to auto: who is bound, to which shares of a machine, and how jobs beside one another choose.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "launch/place/auto_binding.hpp"
#include "launch/place/cpu_quota.hpp"
#include "launch/place/topology.hpp"
#include "launch/processes/environment.hpp"
#include "support/catch.hpp"
#include "support/jumping_time.hpp"
#include "unit/launch/fake_files.hpp"

using namespace col::launch;
using col::test::FakeFiles;

namespace {

// What a made-up machine has: so many of each in each of the level before.
struct Shape {
  int nodes = 1, caches = 1, cores = 1, threads = 1;
  int all_cores() const { return nodes * caches * cores; }
};

std::vector<int> all_of(int count) {
  std::vector<int> cpus(static_cast<std::size_t>(count));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

// Its sysfs. Cores are numbered through; the second threads come behind all first ones.
class ShapedSys : public FakeFiles {
 public:
  explicit ShapedSys(const Shape& shape) : shape_(shape) {
    const int cores = shape.all_cores();
    for (int cpu = 0; cpu < cores * shape.threads; ++cpu) {
      const int core = cpu % cores;
      const std::string directory = fmt::format("devices/system/cpu/cpu{}/", cpu);
      write(directory + "topology/core_cpus_list", cpus_of(core, 1));
      write(directory + "cache/index2/level", "2\n");
      write(directory + "cache/index2/shared_cpu_list", cpus_of(core, 1));
      write(directory + "cache/index3/level", "3\n");
      write(directory + "cache/index3/shared_cpu_list", cpus_of(core - core % shape.cores, shape.cores));
    }
    const int in_node = cores / shape.nodes;
    for (int node = 0; node < shape.nodes; ++node)
      write(fmt::format("devices/system/node/node{}/cpulist", node), cpus_of(node * in_node, in_node));
  }

  Topology topology() const { return read_topology(all_of(shape_.all_cores() * shape_.threads), path()); }

 private:
  std::string cpus_of(int first, int count) const {
    std::vector<int> cpus;
    for (int thread = 0; thread < shape_.threads; ++thread) {
      for (int core = first; core < first + count; ++core) cpus.push_back(core + thread * shape_.all_cores());
    }
    return cpu_list_text(cpus) + "\n";
  }

  Shape shape_;
};

// "0-3 4-7": the processors of each rank; "-": not bound.
std::string text_of(const std::vector<std::vector<int>>& ranks) {
  std::string text;
  for (const auto& cpus : ranks) text += (text.empty() ? "" : " ") + (cpus.empty() ? "-" : cpu_list_text(cpus));
  return text;
}

std::string bound(const Shape& shape, const RankNeeds& needs) {
  const ShapedSys sys(shape);
  CoreLocks locks(sys.path());
  const Binding binding = bind_to_shares(sys.topology(), needs, locks);
  CHECK((locks.held() == 0) == !binding.why_not.empty());
  return binding.why_not.empty() ? text_of(binding.cpus) : binding.why_not;
}

std::string bound(const Shape& shape, int ranks) {
  return bound(shape, {.ranks = ranks});
}

}  // namespace

TEST_CASE("topology: third-level caches are told apart, each read once", "[launch]") {
  const Shape shape{.nodes = 2, .caches = 2, .cores = 2, .threads = 2};
  const ShapedSys sys(shape);
  // The others' files are not needed: CPU 1 shares that of CPU 0.
  sys.write("devices/system/cpu/cpu1/cache/index3/shared_cpu_list", "rubbish\n");
  const Topology topology = sys.topology();
  std::vector<int> caches, first, nodes;
  for (const Core& core : topology.cores) {
    caches.push_back(core.cache);
    first.push_back(core.first_cpu);
    nodes.push_back(core.node);
  }
  CHECK(caches == std::vector<int>{0, 0, 2, 2, 4, 4, 6, 6});
  CHECK(first == all_of(8));
  CHECK(nodes == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1});
}

TEST_CASE("topology: a machine without a third-level cache, and a core whose first thread is not ours", "[launch]") {
  const FakeFiles sys;
  for (const int cpu : {0, 1}) {
    const std::string path = fmt::format("devices/system/cpu/cpu{}/", cpu);
    sys.write(path + "topology/core_cpus_list", "0-1\n");
    sys.write(path + "cache/index2/level", "2\n");
    sys.write(path + "cache/index2/shared_cpu_list", "0-1\n");
  }
  const Topology topology = read_topology(std::vector<int>{1}, sys.path());
  REQUIRE(topology.cores.size() == 1);
  CHECK(topology.cores[0].cache == -1);
  CHECK(topology.cores[0].first_cpu == 0);
}

TEST_CASE("shares: whole nodes and whole caches where they divide", "[launch]") {
  const Shape shape{.nodes = 2, .caches = 2, .cores = 4};
  CHECK(bound(shape, 2) == "0-7 8-15");
  CHECK(bound(shape, 4) == "0-3 4-7 8-11 12-15");
  CHECK(bound(shape, 8) == "0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15");
  CHECK(bound(shape, 16) == "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
}

TEST_CASE("shares: where nothing divides they are equal all the same, and few are torn apart", "[launch]") {
  const Shape shape{.nodes = 2, .caches = 2, .cores = 4};
  CHECK(bound(shape, 3) == "0-4 5-7,13-14 8-12");  // five each; the one in the middle has what two nodes had left
  CHECK(bound(shape, 5) == "0-2 3,7,11 4-6 8-10 12-14");
  CHECK(bound(shape, 6) == "0-1 2-3 4-5 8-9 10-11 12-13");
  CHECK(bound({.cores = 8}, 3) == "0-1 2-3 4-5");
}

TEST_CASE("shares: cores of which not all are needed come from every node", "[launch]") {
  const Shape shape{.nodes = 2, .caches = 2, .cores = 4};
  CHECK(bound(shape, 10) == "0 1 2 4 5 8 9 10 12 13");
  CHECK(bound({.nodes = 2, .cores = 4}, 5) == "0 1 2 4 5");
}

TEST_CASE("shares: a core's threads stay together", "[launch]") {
  const Shape shape{.caches = 2, .cores = 2, .threads = 2};
  CHECK(bound(shape, 2) == "0-1,4-5 2-3,6-7");
  CHECK(bound(shape, 4) == "0,4 1,5 2,6 3,7");
  CHECK(bound(shape, 5) == "there are 5 ranks on 4 cores");
}

TEST_CASE("shares: of all shapes and numbers of ranks are equal, apart, and as large as can be", "[launch]") {
  const Shape shape = GENERATE(Shape{1, 1, 7, 1}, Shape{1, 2, 3, 2}, Shape{2, 1, 6, 1}, Shape{2, 3, 4, 1},
                               Shape{4, 2, 2, 2}, Shape{3, 1, 5, 2});
  const ShapedSys sys(shape);
  const Topology topology = sys.topology();
  for (int ranks = 1; ranks <= shape.all_cores(); ++ranks) {
    const std::vector<Share> shares = equal_shares(topology.cores, ranks);
    REQUIRE(shares.size() == static_cast<std::size_t>(ranks));
    std::set<int> seen;
    int across = 0;
    for (const Share& share : shares) {
      REQUIRE(share.size() == topology.cores.size() / shares.size());
      std::set<int> nodes;
      for (const Core& core : share) {
        REQUIRE(seen.insert(core.first_cpu).second);
        nodes.insert(core.node);
      }
      across += nodes.size() > 1 && share.size() * static_cast<std::size_t>(shape.nodes) <= topology.cores.size();
    }
    // Of shares that fit into a node, no more lie across than what is left over in the nodes makes necessary.
    const int size = static_cast<int>(topology.cores.size()) / ranks;
    const int within = shape.nodes * (shape.all_cores() / shape.nodes / size);
    CHECK(across == std::max(0, ranks - within) * (within > 0));
  }
}

TEST_CASE("shares: a rank is put beside its device, as far as there is room", "[launch]") {
  const Shape shape{.nodes = 2, .cores = 4};
  CHECK(bound(shape, {.ranks = 2, .nodes = {1, 0}}) == "4-7 0-3");
  CHECK(bound(shape, {.ranks = 4, .nodes = {1, -1, 1, 0}}) == "4-5 2-3 6-7 0-1");
  CHECK(bound(shape, {.ranks = 4, .nodes = {0, 0, 0, 1}}) == "0-1 2-3 6-7 4-5");
  CHECK(bound(shape, {.ranks = 2, .nodes = {7, -1}}) == "0-3 4-7");
}

TEST_CASE("auto binding: not where a rank has more threads than a share has processors", "[launch]") {
  const Shape shape{.cores = 4, .threads = 2};
  CHECK(bound(shape, {.ranks = 2, .threads = 4}) == "0-1,4-5 2-3,6-7");
  CHECK(bound(shape, {.ranks = 2, .threads = 5}) == "OMP_NUM_THREADS is 5, and a share has 4 CPUs");
  CHECK(bound(shape, {.ranks = 4, .threads = 3}) == "OMP_NUM_THREADS is 3, and a share has 2 CPUs");
}

TEST_CASE("auto binding: what forbids it is said", "[launch]") {
  const auto why = [](Allowance allowance, int ranks) { return why_not_bound(allowance, ranks); };
  const std::vector<int> four = {0, 1, 2, 3};
  CHECK(why({four, four}, 4).empty());
  CHECK(why({four}, 2).empty());  // nobody knows what there would be
  CHECK(why({four, {0, 1}}, 2).empty());
  CHECK(why({four, four}, 1) == "a single rank may use all of them");
  CHECK(why({four, four}, 5) == "there are 5 ranks on 4 CPUs");
  CHECK(why({{1, 2}, four}, 2) == "colrun itself was bound, to 1-2 of 0-3");
  CHECK(why({four, four, 3.5}, 2) == "the control group gives 3.5 CPUs' time on 4 CPUs");
  CHECK(why({four, four, 4.0}, 2).empty());
}

TEST_CASE("auto binding: the threads of a rank are the user's word, or else what it gets", "[launch]") {
  JobSpec spec;
  spec.programs = {{.command = {"a"}}};
  CHECK(most_threads(spec, nullptr, 6) == 6);
  CHECK(most_threads(spec, "2", 6) == 2);
  CHECK(most_threads(spec, "3,2", 6) == 3);
  CHECK(most_threads(spec, "many", 6) == 1);
  CHECK(most_threads(spec, "-4", 6) == 1);
  spec.environment.remove = {"OMP_*"};
  CHECK(most_threads(spec, "2", 6) == 6);
  spec.environment.set = {"OMP_NUM_THREADS=4", "A=1", "OMP_NUM_THREADS=5"};
  CHECK(most_threads(spec, "2", 6) == 5);
  spec.programs.push_back({.command = {"b"}, .environment = {"OMP_NUM_THREADS=8"}});
  CHECK(most_threads(spec, "2", 6) == 8);
  spec.programs.front().environment = {"OMP_NUM_THREADS=1"};
  spec.programs.back().environment = {"OMP_NUM_THREADS_X=9", "OMP_NUM_THREADS=3"};
  CHECK(most_threads(spec, nullptr, 6) == 3);
}

TEST_CASE("offered processors: the control group's, or else those on line", "[launch]") {
  const FakeFiles files;
  const auto offered = [&] { return cpu_list_text(offered_cpus(files / "proc", files / "sys")); };
  CHECK(offered() == "");
  files.write("sys/devices/system/cpu/online", "0-7\n");
  CHECK(offered() == "0-7");
  files.write("proc/self/cgroup", "0::/jobs/a\n");
  files.write("proc/self/mountinfo", fmt::format("31 23 0:28 / {} rw - cgroup2 cgroup2 rw\n", files / "two"));
  CHECK(offered() == "0-7");
  files.write("two/cpuset.cpus.effective", "0-6\n");
  CHECK(offered() == "0-6");
  files.write("two/jobs/cpuset.cpus.effective", "2-5\n");  // that of `a` has no cpuset of its own
  CHECK(offered() == "2-5");
  files.write("two/jobs/a/cpuset.cpus.effective", "\n");
  CHECK(offered() == "2-5");

  files.write("proc/self/cgroup", "3:cpuset:/b\n");
  files.write("proc/self/mountinfo", fmt::format("34 31 0:31 / {} rw - cgroup cgroup rw,cpuset\n", files / "one"));
  files.write("one/b/cpuset.cpus", "4,6\n");
  CHECK(offered() == "4,6");
  files.write("one/b/cpuset.effective_cpus", "6\n");
  CHECK(offered() == "6");
}

TEST_CASE("offered processors: nobody has bound this test, or its mask has fewer", "[launch]") {
  const std::vector<int> offered = offered_cpus();
  for (const int cpu : allowed_cpus()) CHECK(std::ranges::binary_search(offered, cpu));
}

// ---- Jobs beside one another: other processes, as launchers are -----------------------------------------------------

namespace {

// A process that takes the locks of the first cores, and holds them until it is killed.
class Neighbour {
 public:
  Neighbour(const FakeFiles& sys, std::vector<Core> cores) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      CoreLocks locks(sys.path());
      std::vector<int> cpus;
      for (const Core& core : locks.take(cores)) cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
      std::ranges::sort(cpus);
      locks.keep(cpus);
      const char held = static_cast<char>(locks.held());
      if (::write(ends[1], &held, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char held = 0;
    const bool told = ::read(ends[0], &held, 1) == 1;
    ::close(ends[0]);
    ::close(ends[1]);
    REQUIRE(told);
    CHECK(held == static_cast<char>(cores.size()));
  }
  ~Neighbour() { kill(); }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

std::string choice(const FakeFiles& sys, const Topology& topology, const RankNeeds& needs) {
  CoreLocks locks(sys.path());
  const Binding binding = bind_to_shares(topology, needs, locks);
  return binding.why_not.empty() ? text_of(binding.cpus) : binding.why_not;
}

}  // namespace

TEST_CASE("core locks: a job beside another takes what that has left, and a killed one leaves all", "[launch]") {
  const Shape shape{.nodes = 2, .cores = 4};
  const ShapedSys sys(shape);
  const Topology topology = sys.topology();
  const std::vector<Core>& cores = topology.cores;
  {
    Neighbour first(sys, {cores.begin(), cores.begin() + 3});
    CHECK(choice(sys, topology, {.ranks = 2}) == "4-5 6-7");
    CHECK(choice(sys, topology, {.ranks = 4}) == "3 4 5 6");
    CHECK(choice(sys, topology, {.ranks = 6}) == "other jobs hold 3 of 8 cores");
    CHECK(choice(sys, topology, {.ranks = 2, .threads = 4}) ==
          "OMP_NUM_THREADS is 4, and other jobs hold 3 of 8 cores: a share has 2 CPUs");
    const Neighbour second(sys, {cores.begin() + 4, cores.end()});
    CHECK(choice(sys, topology, {.ranks = 2}) == "other jobs hold 7 of 8 cores");
    first.kill();
    CHECK(choice(sys, topology, {.ranks = 2}) == "0-1 2-3");
  }
  CHECK(choice(sys, topology, {.ranks = 2}) == "0-3 4-7");
}

TEST_CASE("core locks: only cores in use stay locked, and none of a job that is not bound", "[launch]") {
  const Shape shape{.cores = 5};
  const ShapedSys sys(shape);
  const Topology topology = sys.topology();
  CoreLocks locks(sys.path());
  CHECK(text_of(bind_to_shares(topology, {.ranks = 2}, locks).cpus) == "0-1 2-3");
  CHECK(locks.held() == 4);
  CoreLocks others(sys.path());
  CHECK(bind_to_shares(topology, {.ranks = 2}, others).why_not == "other jobs hold 4 of 5 cores");
  CHECK(others.held() == 0);
  CHECK(others.error() == 0);
  CHECK(choice(sys, topology, {.ranks = 1}) == "4");
}

TEST_CASE("core locks: of many that choose at once, no two get one core", "[launch]") {
  const Shape shape{.cores = 12};
  const ShapedSys sys(shape);
  const Topology topology = sys.topology();
  std::array<int, 2> go{}, said{};
  REQUIRE(::pipe(go.data()) == 0);
  REQUIRE(::pipe(said.data()) == 0);
  constexpr int kJobs = 6;
  std::vector<pid_t> jobs;
  for (int job = 0; job < kJobs; ++job) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(go[1]);
      char byte = 0;
      if (::read(go[0], &byte, 1) != 0) ::_exit(1);  // it ends for all at once
      CoreLocks locks(sys.path());
      const std::vector<Core> free = locks.take(topology.cores);
      std::vector<int> two;
      for (std::size_t i = 0; i < 2 && i < free.size(); ++i) two.push_back(free[i].first_cpu);
      locks.keep(two);
      for (const int cpu : two) {
        const char number = static_cast<char>(cpu);
        if (::write(said[1], &number, 1) != 1) ::_exit(1);
      }
      ::close(said[1]);
      for (;;) ::pause();
    }
    jobs.push_back(pid);
  }
  for (const int fd : {go[0], go[1], said[1]}) ::close(fd);
  std::multiset<int> chosen;
  for (char cpu = 0; ::read(said[0], &cpu, 1) == 1;) chosen.insert(cpu);
  ::close(said[0]);
  for (const pid_t pid : jobs) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  CHECK(std::vector<int>(chosen.begin(), chosen.end()) == all_of(12));
}

TEST_CASE("core locks: where they cannot be had nobody is bound, and it is said", "[launch]") {
  const Shape shape{.cores = 2};
  const ShapedSys sys(shape);
  const Topology topology = sys.topology();
  CHECK(choice(sys, topology, {.ranks = 2}) == "0 1");
  {
    CoreLocks locks(sys / "missing");
    CHECK(bind_to_shares(topology, {.ranks = 2}, locks).why_not ==
          "what other jobs use cannot be seen (No such file or directory)");
    CHECK(locks.error() == ENOENT);
  }
  // A core that sysfs does not know.
  Topology more = topology;
  more.cores.push_back({.cpus = {7}, .first_cpu = 7});
  CoreLocks locks(sys.path());
  CHECK_FALSE(bind_to_shares(more, {.ranks = 2}, locks).why_not.empty());
  CHECK(locks.held() == 0);
  CHECK(choice(sys, topology, {.ranks = 2}) == "0 1");  // nothing stays locked
}

TEST_CASE("core locks: a launcher that stays in the door is not waited for without end", "[launch]") {
  const Shape shape{.cores = 2};
  const ShapedSys sys(shape);
  const Topology topology = sys.topology();
  CoreLocks stays(sys.path());
  CHECK(stays.take({}).empty());  // no keep()
  const col::test::JumpingTime time;
  CHECK(choice(sys, topology, {.ranks = 2}) == "what other jobs use cannot be seen (Connection timed out)");
  stays.keep({});
  CHECK(choice(sys, topology, {.ranks = 2}) == "0 1");
}

TEST_CASE("core locks: this machine has them for every user", "[launch]") {
  const Topology topology = read_topology(allowed_cpus());
  CoreLocks locks;
  locks.take(topology.cores);
  // Other jobs may hold cores here; none of them keeps us from asking.
  CHECK((locks.error() == 0 || locks.error() == ETIMEDOUT));
  locks.keep({});
  CHECK(locks.held() == 0);
}
