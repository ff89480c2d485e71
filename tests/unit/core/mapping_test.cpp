// Memory that is the program's own, and which must not be written.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "core/mapping.hpp"
#include "core/unique_fd.hpp"
#include "support/catch.hpp"

using col::core::may_be_shared;
using col::core::may_write;
using col::core::Writing;

namespace {

constexpr std::size_t kMappedBytes = 1 << 16;
constexpr std::size_t kLong = 1 << 20;  // of so long ones it remembers nothing; it looks at where they begin

struct Mapped {
  Mapped(int fd, int rights, int kind) : memory(::mmap(nullptr, kMappedBytes, rights, kind, fd, 0)) {
    REQUIRE(memory != MAP_FAILED);
  }
  ~Mapped() { ::munmap(memory, kMappedBytes); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  void* memory;
};

struct TemporaryFile {
  explicit TemporaryFile(const std::string& prefix) : name("/tmp/" + prefix + "XXXXXX"), fd(::mkstemp(name.data())) {
    REQUIRE(fd);
    REQUIRE(::ftruncate(fd.get(), kMappedBytes) == 0);
  }
  ~TemporaryFile() { ::unlink(name.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string name;
  col::core::UniqueFd fd;
};

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

}  // namespace

TEST_CASE("mapping: the program's own memory, touched or not", "[mapping]") {
  const std::vector<int> vector(1000);
  const Mapped untouched(-1, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{8}, kLong}) {
    CHECK_FALSE(may_be_shared(vector.data(), bytes));
    CHECK_FALSE(may_be_shared(untouched.memory, bytes));
    CHECK(may_write(vector.data(), bytes) == Writing::allowed);
  }
}

TEST_CASE("mapping: memory that others may map can be written, if it may be", "[mapping]") {
  const TemporaryFile file("col-mapping-");
  const Mapped anonymous(-1, kReadWrite, MAP_SHARED | MAP_ANONYMOUS), of_file(file.fd.get(), kReadWrite, MAP_SHARED),
      read_only(file.fd.get(), PROT_READ, MAP_SHARED), own_copy(file.fd.get(), kReadWrite, MAP_PRIVATE);
  for (const Mapped* mapped : {&anonymous, &of_file, &own_copy}) {
    CHECK(may_be_shared(mapped->memory, kLong));
    CHECK(may_write(mapped->memory, kLong) == Writing::allowed);
  }
  CHECK(may_be_shared(read_only.memory, kLong));
  CHECK(may_write(static_cast<const char*>(read_only.memory) + kMappedBytes - 8, kLong) == Writing::read_only);
  REQUIRE(::mprotect(of_file.memory, kMappedBytes, PROT_READ) == 0);  // soon after it was looked up
  CHECK(may_write(of_file.memory, kLong) == Writing::read_only);
  *static_cast<volatile char*>(own_copy.memory) = 1;  // the page is the program's own from now on
  CHECK_FALSE(may_be_shared(own_copy.memory, kLong));
}

TEST_CASE("mapping: Ray's object store has a file by its name, which it has removed", "[mapping]") {
  const TemporaryFile file("plasma");
  const Mapped mapped(file.fd.get(), kReadWrite, MAP_SHARED), again(file.fd.get(), kReadWrite, MAP_SHARED);
  CHECK(may_write(mapped.memory, kLong) == Writing::allowed);  // a file of the user's
  ::unlink(file.name.c_str());
  // By a thread that has not looked there before.
  std::jthread([&] { CHECK(may_write(again.memory, kLong) == Writing::of_ray); }).join();
}

TEST_CASE("mapping: a forked child looks at its own memory", "[mapping]") {
  const Mapped before(-1, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS);
  CHECK_FALSE(may_be_shared(before.memory, kLong));
  const pid_t child = ::fork();
  if (child == 0) {
    void* const again = ::mmap(before.memory, kMappedBytes, kReadWrite, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
                               0);  // in the child alone
    ::_exit(again == before.memory && may_be_shared(again, kLong) ? 0 : 1);
  }
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK_FALSE(may_be_shared(before.memory, kLong));
}
