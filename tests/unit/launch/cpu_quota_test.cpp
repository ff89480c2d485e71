#include "launch/place/cpu_quota.hpp"

#include <sched.h>

#include <optional>
#include <string>

#include <fmt/format.h>

#include "launch/job/launch_error.hpp"
#include "launch/place/control_groups.hpp"
#include "launch/place/cpu_list.hpp"
#include "launch/place/preflight.hpp"
#include "support/catch.hpp"
#include "unit/launch/fake_files.hpp"

using namespace col::launch;
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
  try {
    check_process_limit(ranks, proc);
  } catch (const LaunchError& error) {
    CHECK(error.exit_code() == 125);
    return error.what();
  }
  return "";
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

TEST_CASE("preflight: too few processes are said before anything is started", "[launch]") {
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
                    "pids.max or use fewer ranks",
                    machine.files / "group/pod"));
}

TEST_CASE("preflight: version 1 limits processes, too", "[launch]") {
  const Version1 machine("/a");
  machine.files.write("pids/a/pids.max", "8\n");
  machine.files.write("pids/a/pids.current", "3\n");
  CHECK(refusal(4, machine.files / "proc").empty());
  CHECK_FALSE(refusal(5, machine.files / "proc").empty());
}

TEST_CASE("preflight: too few open files", "[launch]") {
  CHECK(open_files_needed(8) == 88);
  CHECK_NOTHROW(check_open_files(8, 88));
  CHECK_NOTHROW(check_open_files(8, RLIM_INFINITY));
  CHECK_THROWS_WITH(check_open_files(8, 87),
                    "8 ranks need 88 open files, but the hard limit is 87; raise it (ulimit -Hn) or use fewer ranks");
  CHECK_NOTHROW(preflight(1));
}
