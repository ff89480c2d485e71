#include "launch/report/out_of_memory.hpp"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using col::launch::OutOfMemoryWatch;

namespace {

// A tree of files as the kernel has it.
struct Tree {
  col::test::TempDir directory;
  OutOfMemoryWatch::Places places{directory / "own", directory / "cgroup", directory / "vmstat"};

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = directory / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::trunc) << text;
  }
  void set_version2(const std::string& group, int kills) const {
    write("cgroup" + group + "/memory.events",
          fmt::format("low 0\nhigh 0\nmax 31\noom 9\noom_kill {}\noom_group_kill 7\n", kills));
  }
  void set_version1(const std::string& group, int kills) const {
    write("cgroup/memory" + group + "/memory.oom_control",
          fmt::format("oom_kill_disable 0\nunder_oom 0\noom_kill {}\n", kills));
  }
  void set_machine(int kills) const { write("vmstat", fmt::format("nr_free_pages 1\noom_kill {}\nzswpin 8\n", kills)); }
};

}  // namespace

TEST_CASE("out of memory: a kill in our group is claimed once", "[launch]") {
  const Tree tree;
  tree.write("own", "0::/jobs/ours\n");
  tree.set_version2("/jobs/ours", 5);
  OutOfMemoryWatch watch(tree.places);
  CHECK_FALSE(watch.claim());
  tree.set_version2("/jobs/ours", 7);
  CHECK(watch.unclaimed() == 2);
  CHECK(watch.claim());
  CHECK(watch.claim());
  CHECK_FALSE(watch.claim());
  CHECK(watch.unclaimed() == 0);
}

TEST_CASE("out of memory: kills elsewhere are no concern of ours where our own can be read", "[launch]") {
  const Tree tree;
  tree.write("own", "0::/jobs/ours\n");
  tree.set_version2("/jobs/ours", 0);
  tree.set_version2("/jobs", 1);
  tree.set_machine(2);
  OutOfMemoryWatch watch(tree.places);
  tree.set_version2("/jobs", 2);
  tree.set_machine(3);
  CHECK_FALSE(watch.claim());
}

TEST_CASE("out of memory: a group around ours stands in, then the machine", "[launch]") {
  const Tree tree;
  tree.write("own", "0::/jobs/ours\n");
  tree.set_machine(4);
  SECTION("a group around ours") {
    tree.set_version2("/jobs", 1);
    OutOfMemoryWatch watch(tree.places);
    tree.set_version2("/jobs", 2);
    CHECK(watch.claim());
  }
  SECTION("the mount itself, as a container sees its own") {
    tree.set_version2("", 1);
    OutOfMemoryWatch watch(tree.places);
    tree.set_version2("", 2);
    CHECK(watch.claim());
  }
  SECTION("the machine") {
    OutOfMemoryWatch watch(tree.places);
    CHECK_FALSE(watch.claim());
    tree.set_machine(5);
    CHECK(watch.claim());
    CHECK_FALSE(watch.claim());
  }
}

TEST_CASE("out of memory: version 1 of control groups", "[launch]") {
  const Tree tree;
  tree.write("own", "9:name=systemd:/\n4:cpu,memory:/jobs/ours\n0::/\n");
  tree.set_version1("/jobs/ours", 3);
  tree.set_version2("", 3);
  OutOfMemoryWatch watch(tree.places);
  tree.set_version2("", 4);
  CHECK_FALSE(watch.claim());
  tree.set_version1("/jobs/ours", 4);
  CHECK(watch.claim());
}

TEST_CASE("out of memory: version 2 beside version 1", "[launch]") {
  const Tree tree;
  tree.write("own", "1:cpu:/x\n0::/ours\n");
  tree.write("cgroup/unified/cgroup.procs", "");
  tree.set_version2("/unified/ours", 1);
  OutOfMemoryWatch watch(tree.places);
  tree.set_version2("/unified/ours", 2);
  CHECK(watch.claim());
}

TEST_CASE("out of memory: nothing to read, or nonsense, is no kill", "[launch]") {
  const Tree tree;
  OutOfMemoryWatch nothing(tree.places);
  CHECK_FALSE(nothing.claim());
  tree.write("own", "0::/../../other\nnonsense\n::\n");
  tree.write("vmstat", "oom_kill\noom_kill x\n");
  OutOfMemoryWatch nonsense(tree.places);
  tree.write("vmstat", "oom_kill 3x\n");
  CHECK_FALSE(nonsense.claim());
  tree.set_machine(5);
  OutOfMemoryWatch gone(tree.places);
  tree.set_machine(3);  // a counter never does that
  CHECK_FALSE(gone.claim());
  tree.write("vmstat", "");
  CHECK_FALSE(gone.claim());
}

TEST_CASE("out of memory: this machine's own counts can be read", "[launch]") {
  std::ifstream vmstat("/proc/vmstat");
  std::string text((std::istreambuf_iterator<char>(vmstat)), std::istreambuf_iterator<char>());
  REQUIRE(text.find("\noom_kill ") != std::string::npos);
  OutOfMemoryWatch watch;
  CHECK(watch.unclaimed() < 1000);
}
