// What control groups allow, and what they count.
#include <sched.h>

#include <optional>
#include <string>

#include <fmt/format.h>

#include "launch/inspect.hpp"
#include "launch/nodes/rendezvous.hpp"
#include "launch/place/cpu_quota.hpp"
#include "launch/place/topology.hpp"
#include "launch/processes/limits.hpp"
#include "support/catch.hpp"
#include "unit/launch/fake_files.hpp"

using namespace col::launch;
using col::launch::OutOfMemoryWatch;
using col::test::FakeFiles;

namespace {

// A machine with control groups of version 2; this process is in `group`, and `root` of the hierarchy is mounted.
struct Version2 {
  explicit Version2(const std::string& group, const std::string& root = "/") {
    files.write("proc/self/cgroup", "0::" + group + "\n");
    files.write("proc/self/mountinfo",
                "22 1 0:21 / /proc rw - proc proc rw\n" +
                    fmt::format("30 22 0:26 {} {} rw,nosuid shared:9 - cgroup2 cgroup2 rw\n", root, files / "group"));
  }
  std::optional<double> quota() const { return cpu_quota(files / "proc"); }
  FakeFiles files;
};

// Version 1, with "cpu" and "pids" in hierarchies of their own.
struct Version1 {
  explicit Version1(const std::string& group, const std::string& root = "/") {
    files.write("proc/self/cgroup",
                fmt::format("12:cpuset:/\n7:pids:{0}\n4:cpu,cpuacct:{0}\n1:name=systemd:{0}\n0::/x\n", group));
    files.write("proc/self/mountinfo", fmt::format("31 22 0:27 {0} {1} rw - cgroup cgroup rw,cpuset\n"
                                                   "32 22 0:28 {0} {2} rw - cgroup cgroup rw,cpu,cpuacct\n"
                                                   "33 22 0:29 {0} {3} rw - cgroup cgroup rw,pids\n",
                                                   root, files / "cpuset", files / "cpu", files / "pids"));
  }
  std::optional<double> quota() const { return cpu_quota(files / "proc"); }
  FakeFiles files;
};

std::string refusal(int ranks, const std::string& proc) {
  const Needs needs = needs_of({.programs = {{.command = {"a"}, .ranks = ranks}}}, {});
  return col::test::refusal_of(125, [&] { check_processes(needs, RLIM_INFINITY, proc); });
}

}  // namespace

TEST_CASE("cpu list: is read and written as the kernel does", "[launch]") {
  CHECK(parse_cpu_list("0-3,8\n") == std::vector<int>{0, 1, 2, 3, 8});
  CHECK(parse_cpu_list("7,1-2,2") == std::vector<int>{1, 2, 7});
  CHECK(parse_cpu_list("65535") == std::vector<int>{65535});
  for (const char* const wrong : {"", "\n", "a", "1,", ",1", "3-1", "1-", "-1", "0-65536", "1 2", "0-9999999999"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_cpu_list(wrong));
  }
  CHECK(cpu_list_text(std::vector<int>{0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
  CHECK(cpu_list_text(std::vector<int>{}).empty());
}

TEST_CASE("cpu list: overlapping ranges do not eat the memory", "[launch]") {
  std::string text = "0-65535";
  for (int i = 0; i < 1000; ++i) text += ",0-65535";
  CHECK_FALSE(parse_cpu_list(text));
}

TEST_CASE("cpu quota: without control groups there is none", "[launch]") {
  const FakeFiles files;
  CHECK_FALSE(cpu_quota(files / "proc"));
  const Version2 machine("/");  // its files are missing, too
  CHECK_FALSE(machine.quota());
}

TEST_CASE("cpu quota: of version 2, the least of all ancestors counts", "[launch]") {
  const Version2 machine("/pod/box/app");
  machine.files.write("group/pod/box/app/cpu.max", "max 100000\n");
  CHECK_FALSE(machine.quota());
  machine.files.write("group/pod/box/cpu.max", "400000 100000\n");
  CHECK(machine.quota() == 4.0);
  machine.files.write("group/pod/cpu.max", "75000 50000\n");
  CHECK(machine.quota() == 1.5);
  machine.files.write("group/pod/box/app/cpu.max", "200000 100000\n");
  CHECK(machine.quota() == 1.5);
}

TEST_CASE("cpu quota: a container sees its own group as the root", "[launch]") {
  SECTION("with a name space of its own") {
    const Version2 machine("/");
    machine.files.write("group/cpu.max", "300000 100000\n");
    CHECK(machine.quota() == 3.0);
  }
  SECTION("with the host's names, and what it may see mounted") {
    const Version1 machine("/docker/0123", "/docker/0123");
    machine.files.write("cpu/cpu.cfs_quota_us", "250000\n");
    machine.files.write("cpu/cpu.cfs_period_us", "100000\n");
    CHECK(machine.quota() == 2.5);
  }
  SECTION("below what is mounted") {
    const Version1 machine("/docker/0123/app", "/docker/0123");
    machine.files.write("cpu/app/cpu.cfs_quota_us", "50000\n");
    machine.files.write("cpu/app/cpu.cfs_period_us", "100000\n");
    CHECK(machine.quota() == 0.5);
  }
  SECTION("outside of what is mounted") {
    const Version2 machine("/../other", "/");
    machine.files.write("group/cpu.max", "100000 100000\n");
    CHECK(machine.quota() == 1.0);
  }
}

TEST_CASE("cpu quota: of version 1, -1 is no limit", "[launch]") {
  const Version1 machine("/a/b");
  machine.files.write("cpu/a/b/cpu.cfs_quota_us", "-1\n");
  machine.files.write("cpu/a/b/cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(machine.quota());
  machine.files.write("cpu/a/cpu.cfs_quota_us", "120000\n");
  machine.files.write("cpu/a/cpu.cfs_period_us", "100000\n");
  CHECK(machine.quota() == 1.2);
  // Another controller's hierarchy says nothing about processors.
  machine.files.write("cpuset/cpu.cfs_quota_us", "10000\n");
  machine.files.write("cpuset/cpu.cfs_period_us", "100000\n");
  CHECK(machine.quota() == 1.2);
}

TEST_CASE("cpu quota: files that make no sense are no limit", "[launch]") {
  const Version2 machine("/app");
  for (const char* const text : {"", "\n", "100000", "100000 ", "100000 0", "0 100000", "-5 100000", "many 100000"}) {
    CAPTURE(text);
    machine.files.write("group/app/cpu.max", text);
    CHECK_FALSE(machine.quota());
  }
}

TEST_CASE("control groups: mount points may hold spaces", "[launch]") {
  const FakeFiles files;
  files.write("proc/self/cgroup", "0::/app\n");
  files.write("proc/self/mountinfo", "30 22 0:26 / " + (files / "my\\040groups") + " rw - cgroup2 none rw\n");
  CHECK(control_groups("cpu", files / "proc") ==
        std::vector<std::string>{files / "my groups/app", files / "my groups"});
}

TEST_CASE("usable processors: the quota is rounded up, and there is at least one", "[launch]") {
  CHECK(usable_cpus(8, std::nullopt) == 8);
  CHECK(usable_cpus(8, 2.0) == 2);
  CHECK(usable_cpus(8, 2.1) == 3);
  CHECK(usable_cpus(8, 0.1) == 1);
  CHECK(usable_cpus(2, 64.0) == 2);
  CHECK(usable_cpus(0, std::nullopt) == 1);
}

TEST_CASE("usable processors: this process's affinity mask counts", "[launch]") {
  const std::vector<int> before = allowed_cpus();
  REQUIRE_FALSE(before.empty());
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(before.back()), &one);
  cpu_set_t all;
  REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
  CHECK(CPU_COUNT(&all) == static_cast<int>(before.size()));
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(allowed_cpus() == std::vector<int>{before.back()});
  CHECK(usable_cpus() == 1);
  REQUIRE(::sched_setaffinity(0, sizeof all, &all) == 0);
  CHECK(allowed_cpus() == before);
}

TEST_CASE("limits: too few processes are said before anything is started", "[launch]") {
  const Version2 machine("/pod/app");
  const std::string proc = machine.files / "proc";
  CHECK(refusal(4, proc).empty());
  machine.files.write("group/pod/app/pids.max", "max\n");
  machine.files.write("group/pod/pids.max", "100\n");
  machine.files.write("group/pod/pids.current", "90\n");
  CHECK(refusal(9, proc).empty());
  const std::string text = refusal(10, proc);
  CHECK(text ==
        fmt::format("10 ranks need 11 processes, but the control group {} may have 100 and has 90 now; raise its "
                    "pids.max to 101 or use fewer ranks",
                    machine.files / "group/pod"));
}

TEST_CASE("preflight: version 1 limits processes, too", "[launch]") {
  const Version1 machine("/a");
  machine.files.write("pids/a/pids.max", "8\n");
  machine.files.write("pids/a/pids.current", "3\n");
  CHECK(refusal(4, machine.files / "proc").empty());
  CHECK_FALSE(refusal(5, machine.files / "proc").empty());
}

TEST_CASE("limits: too few processes of this user are said with a number that suffices", "[launch]") {
  const FakeFiles files;
  const auto add = [&](const std::string& pid, int user, int threads) {
    files.write(
        "proc/" + pid + "/status",
        fmt::format("Name:\tUid: 9\nUid:\t{0}\t7\t7\t7\nThreads:\t{1}\nCapEff:\t0000000000000000\n", user, threads));
  };
  add("self", 1000, 1);
  add("20", 1000, 1);
  add("21", 1000, 4);
  add("22", 1001, 50);
  const auto says = [&](int ranks, rlim_t limit) {
    const Needs needs = needs_of({.programs = {{.command = {"a"}, .ranks = ranks}}}, {});
    return col::test::refusal_of(125, [&] { check_processes(needs, limit, files / "proc"); });
  };
  CHECK(says(16, 22).empty());
  CHECK(says(16, RLIM_INFINITY).empty());
  CHECK(says(16, 21) ==
        "16 ranks need 17 processes, but this user may have 21 and has 5 now; raise the limit to 22 (ulimit -u) or use "
        "fewer ranks");
  CHECK(says(1, 6).starts_with("1 rank needs 2 processes, but this user may have 6 and has 5 now"));
  CHECK_FALSE(says(16, 0).empty());
  // However high the limit is, the user may already be near it.
  add("23", 1000, 20000);
  CHECK_FALSE(says(16, 20021).empty());
  CHECK(says(16, 20022).empty());
  CHECK(says(16, RLIM_INFINITY - 1).empty());
  // Nobody is counted where all of this machine's have room.
  files.write("proc/loadavg", "0.20 0.18 0.12 1/80 11206\n");
  CHECK(says(16, 97).empty());
  CHECK_FALSE(says(16, 96).empty());
}

TEST_CASE("limits: the kernel counts no processes of root, nor of who may exceed limits", "[launch]") {
  const FakeFiles files;
  const auto says = [&](const std::string& status) {
    files.write("proc/self/status", status);
    files.write("proc/20/status", status);
    const Needs needs = needs_of({.programs = {{.command = {"a"}, .ranks = 16}}}, {});
    return col::test::refusal_of(125, [&] { check_processes(needs, 12, files / "proc"); });
  };
  const std::string capable = "Uid:\t1000\t0\t0\t0\nCapEff:\t0000000001000000\n";
  const std::string root = "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n";
  for (const std::string& status : {capable, root}) {
    CAPTURE(status);
    files.write("proc/self/uid_map", "         0          0 4294967295\n");
    CHECK(says(status).empty());
    // Whoever is root in a user namespace is a user like others outside of it.
    files.write("proc/self/uid_map", "         0       1000          1\n");
    CHECK(says(status).starts_with("16 ranks need 17 processes, but this user may have 12 and has 1 now"));
  }
}

TEST_CASE("limits: a fork that failed says which limit, and a number that suffices", "[launch]") {
  const Version2 machine("/a");
  const std::string proc = machine.files / "proc";
  CHECK(why_no_process(EAGAIN, 4, 12, proc) ==
        "this user may have 12 processes; raise the limit to 16 (ulimit -u) or use fewer ranks");
  machine.files.write("group/a/pids.max", "20\n");
  machine.files.write("group/a/pids.current", "20\n");
  CHECK(why_no_process(EAGAIN, 4, 12, proc) ==
        fmt::format("the control group {} may have 20 processes; raise its pids.max to 24 or use fewer ranks",
                    machine.files / "group/a"));
  machine.files.write("group/a/pids.current", "19\n");
  CHECK(why_no_process(EAGAIN, 4, RLIM_INFINITY, proc).find("pids.max") != std::string::npos);
  CHECK(why_no_process(ENOMEM, 4, 12, proc) == "Cannot allocate memory");
}

TEST_CASE("limits: too few open files are said with the one number that suffices", "[launch]") {
  const auto needs = [](int ranks, OutputSpec output = {}, InputSpec input = {}) {
    return needs_of({.programs = {{.command = {"a"}, .ranks = ranks}}, .output = std::move(output), .input = input},
                    {});
  };
  const Needs eight = needs(8);
  CHECK_NOTHROW(check_open_files(eight, eight.files));
  CHECK_NOTHROW(check_open_files(eight, RLIM_INFINITY));
  CHECK_THROWS_WITH(check_open_files(eight, eight.files - 1),
                    fmt::format("8 ranks need {} open files, but the hard limit is {}; raise it (ulimit -Hn) or use "
                                "fewer ranks",
                                eight.files, eight.files - 1));
  CHECK_THROWS_WITH(check_open_files(needs(1), 3), Catch::Matchers::StartsWith("1 rank needs "));
  const auto of_each = [&](const OutputSpec& output, InputSpec input = {}) {
    return (needs(100, output, input).files - needs(50, output, input).files) / 50;
  };
  const rlim_t plain = of_each({});
  CHECK(of_each({.label = "[%r] "}) == plain);
  CHECK(of_each({.merge = true}) == plain - 1);
  CHECK(of_each({.file_pattern = "%r.%s"}) == plain - 2);  // ranks write there themselves
  CHECK(of_each({.label = "[%r] ", .file_pattern = "%r.%s"}) == plain + 2);
  CHECK(of_each({.file_pattern = "%r.%s", .tee = true}) == plain + 2);
  CHECK(of_each({}, {.to = InputSpec::To::all}) == plain + 1);
  CHECK(of_each({.pty = true}) == plain);
  CHECK(of_each({.file_pattern = "%r", .pty = true}) == plain + 1);
}

TEST_CASE("limits: other hosts take files and processes, too", "[launch]") {
  JobSpec spec{.programs = {{.command = {"a"}, .ranks = 2}}};
  const Needs alone = needs_of(spec, {});
  spec.nodes.hosts = {{.name = "localhost", .slots = 2},
                      {.name = "198.51.100.1", .slots = 300},
                      {.name = "198.51.100.2", .slots = 300}};
  const Rendezvous meeting = plan_rendezvous(spec, [](const char*) { return std::nullopt; });
  const Needs needs = needs_of(spec, meeting);
  CHECK(needs.files > alone.files + 590);             // each rank may have a connection to the store
  CHECK(needs.processes == alone.processes + 2 + 2);  // an ssh for each, the meeting and its store's thread
  CHECK_THROWS_WITH(check_open_files(needs, 20), Catch::Matchers::StartsWith("2 ranks and 2 other hosts need "));
  // The number that is named suffices on each of them.
  JobSpec of_other = {.programs = {{.command = {"a"}, .ranks = 300}}};
  CHECK(needs.files_of_all >= needs_of(of_other, {}).files);
  CHECK_NOTHROW(check_open_files(needs, needs.files));
}

TEST_CASE("limits: a meeting and a live view take processes, too", "[launch]") {
  JobSpec spec{.programs = {{.command = {"a"}, .ranks = 2}}};
  const long long alone = needs_of(spec, {}).processes;
  CHECK(needs_of(spec, {.alone = false, .may_serve = true, .max_nodes = 2}).processes == alone + 2);
  CHECK(needs_of(spec, {.alone = false, .max_nodes = 2}).processes == alone);
  spec.inspect.watch = true;
  CHECK(needs_of(spec, {}).processes == alone + 1);
}

namespace {

// A machine with both versions of control groups, where "memory" may be in either.
struct Machine {
  explicit Machine(const std::string& groups) {
    files.write("proc/self/cgroup", groups);
    files.write("proc/self/mountinfo", fmt::format("31 22 0:27 / {} rw - cgroup2 cgroup2 rw\n"
                                                   "32 22 0:28 / {} rw - cgroup cgroup rw,memory\n",
                                                   files / "group", files / "memory"));
  }
  void set_version2(const std::string& group, int kills) const {
    files.write("group" + group + "/memory.events",
                fmt::format("low 0\nhigh 0\nmax 31\noom 9\noom_kill {}\noom_group_kill 7\n", kills));
  }
  void set_version1(const std::string& group, int kills) const {
    files.write("memory" + group + "/memory.oom_control",
                fmt::format("oom_kill_disable 0\nunder_oom 0\noom_kill {}\n", kills));
  }
  void set_machine(int kills) const { set_machine(fmt::format("nr_free_pages 1\noom_kill {}\nzswpin 8\n", kills)); }
  void set_machine(const std::string& text) const { files.write("proc/vmstat", text); }
  OutOfMemoryWatch watch() const { return OutOfMemoryWatch(files / "proc"); }

  col::test::FakeFiles files;
};

}  // namespace

TEST_CASE("out of memory: a kill in our group is claimed once", "[launch]") {
  const Machine machine("0::/jobs/ours\n");
  machine.set_version2("/jobs/ours", 5);
  OutOfMemoryWatch watch = machine.watch();
  CHECK_FALSE(watch.claim());
  machine.set_version2("/jobs/ours", 7);
  CHECK(watch.unclaimed() == 2);
  CHECK(watch.claim());
  CHECK(watch.claim());
  CHECK_FALSE(watch.claim());
  CHECK(watch.unclaimed() == 0);
}

TEST_CASE("out of memory: kills elsewhere are no concern of ours where our own can be read", "[launch]") {
  const Machine machine("0::/jobs/ours\n");
  machine.set_version2("/jobs/ours", 0);
  machine.set_version2("/jobs", 1);
  machine.set_machine(2);
  OutOfMemoryWatch watch = machine.watch();
  machine.set_version2("/jobs", 2);
  machine.set_machine(3);
  CHECK_FALSE(watch.claim());
}

TEST_CASE("out of memory: a group around ours stands in, then the machine", "[launch]") {
  const Machine machine("0::/jobs/ours\n");
  machine.set_machine(4);
  SECTION("a group around ours") {
    machine.set_version2("/jobs", 1);
    OutOfMemoryWatch watch = machine.watch();
    machine.set_version2("/jobs", 2);
    CHECK(watch.claim());
  }
  SECTION("the mount itself, as a container sees its own") {
    machine.set_version2("", 1);
    OutOfMemoryWatch watch = machine.watch();
    machine.set_version2("", 2);
    CHECK(watch.claim());
  }
  SECTION("the machine") {
    OutOfMemoryWatch watch = machine.watch();
    CHECK_FALSE(watch.claim());
    machine.set_machine(5);
    CHECK(watch.claim());
    CHECK_FALSE(watch.claim());
  }
}

TEST_CASE("out of memory: version 1 of control groups", "[launch]") {
  const Machine machine("9:name=systemd:/\n4:cpu,memory:/jobs/ours\n0::/\n");
  machine.set_version1("/jobs/ours", 3);
  machine.set_version2("", 3);
  OutOfMemoryWatch watch = machine.watch();
  machine.set_version2("", 4);
  CHECK_FALSE(watch.claim());
  machine.set_version1("/jobs/ours", 4);
  CHECK(watch.claim());
}

TEST_CASE("out of memory: version 2 beside version 1", "[launch]") {
  const Machine machine("1:cpu:/x\n0::/ours\n");
  machine.set_version2("/ours", 1);
  OutOfMemoryWatch watch = machine.watch();
  machine.set_version2("/ours", 2);
  CHECK(watch.claim());
}

TEST_CASE("out of memory: nothing to read, or nonsense, is no kill", "[launch]") {
  CHECK_FALSE(OutOfMemoryWatch("/does/not/exist").claim());
  const Machine machine("0::/../../other\nnonsense\n::\n");
  machine.set_machine("oom_kill\noom_kill x\n");
  OutOfMemoryWatch nonsense = machine.watch();
  machine.set_machine("oom_kill 3x\n");
  CHECK_FALSE(nonsense.claim());
  machine.set_machine(5);
  OutOfMemoryWatch gone = machine.watch();
  machine.set_machine(3);  // a counter never does that
  CHECK_FALSE(gone.claim());
  machine.set_machine("");
  CHECK_FALSE(gone.claim());
}

TEST_CASE("out of memory: this machine's own counts can be read", "[launch]") {
  REQUIRE(col::test::content_of("/proc/vmstat").find("\noom_kill ") != std::string::npos);
  OutOfMemoryWatch watch;
  CHECK(watch.unclaimed() < 1000);
}
