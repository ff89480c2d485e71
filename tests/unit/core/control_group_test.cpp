// Whose limits hold for this process, as the files of both versions of control groups tell.
#include "core/control_group.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col;
using namespace col::test;
using core::control_groups;
using core::ControlGroupPlaces;
using core::processor_quota;

namespace {

// The kernel's files, in a directory.
class Kernel {
 public:
  // What /proc/self/cgroup says.
  explicit Kernel(const std::string& own) { write("own", own); }
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = dir_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  ControlGroupPlaces places() const { return {.own = dir_ / "own", .root = root()}; }
  std::string root() const { return dir_ / "root"; }
  // The folders below the root; "2:" before those of version 2.
  std::vector<std::string> folders(const std::string& controller) const {
    std::vector<std::string> all;
    for (const auto& group : control_groups(controller, places()))
      all.push_back((group.unified() ? "2:" : "1:") + group.folder().substr(root().size()));
    return all;
  }

 private:
  TempDir dir_;
};

using Folders = std::vector<std::string>;

}  // namespace

TEST_CASE("control group: the own one comes first, then all that hold it", "[core]") {
  CHECK(Kernel("0::/").folders("memory") == Folders{"2:"});
  CHECK(Kernel("0::/a/b.scope/c d").folders("memory") == Folders{"2:/a/b.scope/c d", "2:/a/b.scope", "2:/a", "2:"});
}

TEST_CASE("control group: version 1 has a folder for each controller, and may stand beside version 2", "[core]") {
  Kernel kernel("9:name=systemd:/s\n4:memory:/job/7\n2:cpu,cpuacct:/c\n0::/u");
  CHECK(kernel.folders("memory") == Folders{"1:/memory/job/7", "1:/memory/job", "1:/memory", "2:/u", "2:"});
  CHECK(kernel.folders("cpuacct") == Folders{"1:/cpuacct/c", "1:/cpuacct", "2:/u", "2:"});
  kernel.write("root/unified/cgroup.procs", "");
  CHECK(kernel.folders("cpu") == Folders{"1:/cpu/c", "1:/cpu", "2:/unified/u", "2:/unified"});
  // A name that is a part of another one.
  CHECK(Kernel("3:cpuset:/x").folders("cpu").empty());
}

TEST_CASE("control group: what cannot be seen or read is left out", "[core]") {
  CHECK(control_groups("memory", {.own = "/nonexistent", .root = "/nonexistent"}).empty());
  CHECK(Kernel("").folders("memory").empty());
  CHECK(Kernel("nonsense\n0:\n::\n0::relative\n:").folders("memory").empty());
  CHECK(Kernel("0::/../outside").folders("memory").empty());
  CHECK(Kernel("0::/..").folders("memory").empty());
}

TEST_CASE("control group: a number is a number, and every other word is none", "[core]") {
  const Kernel kernel("0::/");
  kernel.write("root/good", "123456789012 7");
  const core::ControlGroup group = control_groups("memory", kernel.places()).at(0);
  CHECK(group.number("good") == 123456789012U);
  CHECK(group.word("good") == "123456789012");
  CHECK(group.word("absent").empty());
  for (const char* text : {"max", "-1", "", "12x", "99999999999999999999999", "1.5"}) {
    INFO(text);
    kernel.write("root/bad", text);
    CHECK_FALSE(group.number("bad").has_value());
  }
  CHECK_FALSE(group.number("absent").has_value());
}

TEST_CASE("control group: the processors are those of the tightest group", "[core]") {
  const Kernel kernel("0::/a/b");
  CHECK_FALSE(processor_quota(kernel.places()).has_value());
  kernel.write("root/a/b/cpu.max", "max 100000");
  CHECK_FALSE(processor_quota(kernel.places()).has_value());
  kernel.write("root/cpu.max", "800000 100000");
  CHECK(processor_quota(kernel.places()) == 8.0);
  kernel.write("root/a/cpu.max", "150000 100000");  // around the own one, and around a container's
  CHECK(processor_quota(kernel.places()) == 1.5);
  kernel.write("root/a/b/cpu.max", "200000 100000");
  CHECK(processor_quota(kernel.places()) == 1.5);
  for (const char* text : {"", "100000", "100000 0", "0 100000", "-5 100000", "x y"}) {
    INFO(text);
    kernel.write("root/a/b/cpu.max", text);
    CHECK(processor_quota(kernel.places()) == 1.5);
  }
}

TEST_CASE("control group: the processors in version 1", "[core]") {
  const Kernel kernel("2:cpu,cpuacct:/job");
  kernel.write("root/cpu/cpu.cfs_quota_us", "-1");
  kernel.write("root/cpu/cpu.cfs_period_us", "100000");
  CHECK_FALSE(processor_quota(kernel.places()).has_value());
  kernel.write("root/cpu/job/cpu.cfs_quota_us", "50000");
  kernel.write("root/cpu/job/cpu.cfs_period_us", "100000");
  CHECK(processor_quota(kernel.places()) == 0.5);
}

TEST_CASE("control group: of this process they can be read", "[core]") {
  for (const char* controller : {"memory", "cpu"}) {
    for (const auto& group : control_groups(controller)) CHECK(group.folder().starts_with("/sys/fs/cgroup"));
  }
  if (const auto quota = processor_quota()) CHECK(*quota > 0);
}
