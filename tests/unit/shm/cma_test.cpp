// Reading the memory of other ranks through the kernel: who finds out what, and what goes wrong.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>

#include "backend/shm/native/cma.hpp"
#include "support/catch.hpp"
#include "unit/shm/shm_ranks.hpp"

using col::shm_backend::Cma;
using col::shm_backend::Presence;
using col::test::RankProcess;

namespace {

constexpr std::uint64_t kGroupToken = 0x1234;

std::uint64_t address(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

// What two ranks tell in a meeting; both are this process.
std::vector<Presence> told_by(const Cma& first, const Cma& second) {
  std::vector<Presence> told(2);
  told[0].identity = first.identity();
  told[1].identity = second.identity();
  return told;
}

}  // namespace

TEST_CASE("reach: after two meetings all know that it works, and reads are right", "[shm]") {
  Cma first("g", 0, kGroupToken), second("g", 1, kGroupToken);
  CHECK(first.may_work());
  CHECK_FALSE(first.works());
  for (int meeting = 0; meeting < 2; ++meeting) {
    const auto told = told_by(first, second);
    first.learn(told);
    second.learn(told);
    CHECK(first.works() == (meeting == 1));
    CHECK(second.works() == (meeting == 1));
  }
  std::vector<unsigned char> from(3'000'001), to(3'000'001);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 31 + i / 4096);
  int rests = 0;
  first.read(1, address(from.data()), reinterpret_cast<std::byte*>(to.data()), to.size(), [&] { ++rests; });
  CHECK(from == to);
  CHECK(rests == 2);  // between parts of a MiB
}

TEST_CASE("reach: where one rank cannot, no rank does", "[shm]") {
  Cma first("g", 0, kGroupToken), second("g", 1, kGroupToken);
  auto told = told_by(first, second);
  first.learn(told);
  told[0].identity.proof += 1;  // at that address in that process lies something else
  second.learn(told);
  told = told_by(first, second);
  CHECK(told[0].identity.reaches_all == 1);
  CHECK(told[1].identity.reaches_all == 0);
  first.learn(told);
  second.learn(told);
  for (const Cma* reach : {&first, &second}) {
    CHECK_FALSE(reach->works());
    CHECK_FALSE(reach->may_work());
  }
}

TEST_CASE("reach: a process that is gone, and memory that is not there", "[shm]") {
  Cma first("g", 0, kGroupToken), second("g", 1, kGroupToken);
  // A process that has all of this at the same addresses.
  const std::uint64_t here = 7;
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  auto& pid = *static_cast<std::atomic<pid_t>*>(page);
  std::optional<RankProcess> process(std::in_place, [&] {
    pid.store(::getpid());
    for (;;) ::pause();
  });
  while (pid.load() == 0) ::sched_yield();
  for (int meeting = 0; meeting < 2; ++meeting) {
    auto told = told_by(first, second);
    told[1].identity.pid = pid.load();
    first.learn(told);
    second.learn(told);
  }
  REQUIRE(first.works());

  std::uint64_t to = 0;
  bool ended = false;
  const auto failure = [&](std::uint64_t from) {
    const auto rest = [&] {
      if (ended) throw col::Error(col::ErrorCode::aborted, "the group has ended");
    };
    try {
      if (!first.read(1, from, reinterpret_cast<std::byte*>(&to), sizeof to, rest)) return std::string("refused");
    } catch (const col::Error& error) {
      return fmt::format("{} of rank {}", to_string(error.code()), error.rank());
    }
    return std::string("no error");
  };
  CHECK(failure(address(&here)) == "no error");
  CHECK(to == 7);
  CHECK(failure(16) == "refused");
  process.reset();  // kills and reaps it
  CHECK(failure(address(&here)) == "peer_lost of rank 1");
  auto told = told_by(first, second);
  CHECK(first.all_have_read(told));
  told[1].identity.reaches_all = 0;
  CHECK_FALSE(first.all_have_read(told));
  CHECK_FALSE(first.may_work());
  ended = true;
  CHECK(failure(address(&here)) == "aborted of rank -1");
  ::munmap(page, 4096);
}
