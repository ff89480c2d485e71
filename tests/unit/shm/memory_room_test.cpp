// How much memory there is to take, as the kernel's files tell, and what happens to a group when there is not enough.
#include "backend/shm/segment/memory_room.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col;
using namespace col::test;
using shm_backend::lack_of_memory;
using shm_backend::memory_room;
using shm_backend::MemoryPlaces;

namespace {

constexpr std::size_t kMi = std::size_t{1} << 20;

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
  void machine(std::size_t available, std::size_t swap) const {
    write("meminfo", "MemTotal:  99999999 kB\nMemFree:  1 kB\nMemAvailable:  " + std::to_string(available >> 10) +
                         " kB\nHugePages_Total:   0\nSwapTotal:  9999999 kB\nSwapFree:  " + std::to_string(swap >> 10) +
                         " kB");
  }
  // A group of version 2.
  void group(const std::string& name, const std::string& limit, std::size_t used) const {
    write("root/" + name + "/memory.max", limit);
    write("root/" + name + "/memory.current", std::to_string(used));
  }
  // One of version 1.
  void old_group(const std::string& name, std::size_t limit, std::size_t used) const {
    write("root/memory/" + name + "/memory.limit_in_bytes", std::to_string(limit));
    write("root/memory/" + name + "/memory.usage_in_bytes", std::to_string(used));
  }
  MemoryPlaces places() const {
    return {.machine = dir_ / "meminfo", .groups = {.own = dir_ / "own", .root = dir_ / "root"}};
  }
  std::string folder(const std::string& name) const { return dir_ / ("root/" + name); }
  std::size_t room() const { return memory_room(places()).value().bytes; }

 private:
  TempDir dir_;
};

}  // namespace

TEST_CASE("memory room: where nothing is told, nothing is known and nothing refused", "[shm]") {
  const Kernel kernel("");
  CHECK_FALSE(memory_room(kernel.places()).has_value());
  CHECK_FALSE(lack_of_memory(std::numeric_limits<std::size_t>::max(), kernel.places()).has_value());
  kernel.write("meminfo", "MemTotal: lots kB\nMemAvailable: 5 kB");
  CHECK_FALSE(memory_room(kernel.places()).has_value());
}

TEST_CASE("memory room: a machine has what it can free, and its swap", "[shm]") {
  const Kernel kernel("0::/");
  kernel.machine(100 * kMi, 0);
  CHECK(kernel.room() == 100 * kMi);
  kernel.machine(100 * kMi, 20 * kMi);
  CHECK(kernel.room() == 120 * kMi);
  CHECK(memory_room(kernel.places())->where == "on this machine");
}

TEST_CASE("memory room: the tightest of all groups around this process counts", "[shm]") {
  const Kernel kernel("0::/job/step/task");
  kernel.machine(100 * kMi, 0);
  kernel.group("job", "max", 5 * kMi);
  CHECK(kernel.room() == 100 * kMi);
  kernel.group("job/step/task", std::to_string(50 * kMi), 5 * kMi);
  CHECK(kernel.room() == 45 * kMi);
  kernel.group("job", std::to_string(60 * kMi), 40 * kMi);
  CHECK(kernel.room() == 20 * kMi);
  CHECK(memory_room(kernel.places())->where == "in the memory limit of the control group " + kernel.folder("job"));
  kernel.group("job/other", "1", 0);  // not around it
  CHECK(kernel.room() == 20 * kMi);
  kernel.machine(10 * kMi, 0);
  CHECK(kernel.room() == 10 * kMi);
  kernel.group("job/step", std::to_string(10 * kMi), 11 * kMi);  // a limit that came later
  CHECK(kernel.room() == 0);
}

TEST_CASE("memory room: what was read from files can be freed", "[shm]") {
  const Kernel kernel("0::/job");
  kernel.machine(1000 * kMi, 0);
  kernel.group("job", std::to_string(60 * kMi), 60 * kMi);
  CHECK(kernel.room() == 0);
  kernel.write("root/job/memory.stat", "anon 3\nfile 31457280\nshmem 9\ninactive_file 20971520\nactive_file 1048576");
  CHECK(kernel.room() == 21 * kMi);
}

TEST_CASE("memory room: a group's swap is what its own limit and the machine have left", "[shm]") {
  const Kernel kernel("0::/job");
  kernel.machine(1000 * kMi, 30 * kMi);
  kernel.group("job", std::to_string(60 * kMi), 50 * kMi);
  CHECK(kernel.room() == 40 * kMi);
  kernel.write("root/job/memory.swap.max", "max");
  kernel.write("root/job/memory.swap.current", "4096");
  CHECK(kernel.room() == 40 * kMi);
  kernel.write("root/job/memory.swap.max", std::to_string(100 * kMi));  // more than the machine has
  CHECK(kernel.room() == 40 * kMi);
  kernel.write("root/job/memory.swap.max", std::to_string(kMi + 4096));
  CHECK(kernel.room() == 11 * kMi);
  kernel.write("root/job/memory.swap.max", "0");
  CHECK(kernel.room() == 10 * kMi);
}

TEST_CASE("memory room: version 1 counts swap together with memory", "[shm]") {
  const Kernel kernel("4:memory:/job/step");
  kernel.machine(1000 * kMi, 30 * kMi);
  kernel.old_group("", 9223372036854771712U, 600 * kMi);  // how it says that there is none
  kernel.old_group("job", 9223372036854771712U, 500 * kMi);
  CHECK(kernel.room() == 1030 * kMi);
  kernel.old_group("job", 60 * kMi, 50 * kMi);
  CHECK(kernel.room() == 40 * kMi);
  CHECK(memory_room(kernel.places())->where ==
        "in the memory limit of the control group " + kernel.folder("memory/job"));
  kernel.write("root/memory/job/memory.memsw.limit_in_bytes", std::to_string(65 * kMi));
  kernel.write("root/memory/job/memory.memsw.usage_in_bytes", std::to_string(50 * kMi));
  CHECK(kernel.room() == 15 * kMi);
  kernel.write("root/memory/job/memory.stat",
               "inactive_file 1\nactive_file 1\ntotal_inactive_file 2097152\ntotal_active_file 1048576");
  CHECK(kernel.room() == 18 * kMi);
  // Hardly any memory, much swap: then both together are the limit.
  kernel.machine(10 * kMi, 0);
  kernel.old_group("job", 60 * kMi, 40 * kMi);
  kernel.write("root/memory/job/memory.memsw.usage_in_bytes", std::to_string(60 * kMi));
  CHECK(kernel.room() == 8 * kMi);
}

TEST_CASE("memory room: a refusal says how much is left where, and leaves the kernel a part for its tables", "[shm]") {
  const Kernel kernel("0::/job");
  kernel.machine(1000 * kMi, 0);
  kernel.group("job", std::to_string(64 * kMi), 0);
  const std::string words = "65536 KiB are left in the memory limit of the control group " + kernel.folder("job");
  CHECK_FALSE(lack_of_memory(0, kernel.places()).has_value());
  CHECK_FALSE(lack_of_memory(63 * kMi, kernel.places()).has_value());
  for (const std::size_t bytes : {64 * kMi - 4096, 64 * kMi, 65 * kMi, std::numeric_limits<std::size_t>::max()})
    CHECK(lack_of_memory(bytes, kernel.places()).value_or("nothing") == words);
  kernel.machine(kMi, 0);
  CHECK(lack_of_memory(2 * kMi, kernel.places()).value_or("nothing") == "1024 KiB are left on this machine");
}

TEST_CASE("memory room: of this machine it is known, and no machine has all that can be counted", "[shm]") {
  const auto room = memory_room();
  REQUIRE(room.has_value());
  CHECK(room->bytes > 0);
  CHECK_FALSE(lack_of_memory(4096).has_value());
  CHECK(lack_of_memory(std::numeric_limits<std::size_t>::max() / 2).has_value());
}
