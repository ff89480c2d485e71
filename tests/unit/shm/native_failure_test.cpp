// What goes wrong in the collectives over shared memory: every rank gets an error, on time, that says why.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/native_calls.hpp"
#include "unit/shm/shm_ranks.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

using Item = std::int32_t;

// The fingerprint is that of the call, as the group layer would make it.
Ending native_ending(ShmChannel& channel, const NativeCall& call, int rank, int size, std::uint64_t number) {
  const NativePart<Item> part(call, rank, size, number);
  Request request = part.request();
  request.fingerprint = (number + 1) << 40 | static_cast<std::uint64_t>(call.collective) << 32 |
                        static_cast<std::uint64_t>(call.root) << 24 | call.count;
  return ending_of([&] { run_native(channel, request, 20s); });
}

// Rank 0 makes one call and the others make another one; then all make barriers until they are told.
void check_mismatch(const NativeCall& first, const NativeCall& others, int size) {
  const auto endings = run_ranks(size, [&](int rank, ShmChannel& channel) {
    Ending ending = native_ending(channel, rank == 0 ? first : others, rank, size, 0);
    for (std::uint64_t number = 1; !ending.code && number < 3; ++number)
      ending = native_ending(channel, {}, rank, size, number);
    expect(ending.code.has_value(), "no error");
    throw Error(*ending.code, ending.text);
  });
  INFO(show(first) << " and " << show(others) << ", " << size << " ranks\n" << show(endings));
  const auto saw = std::count_if(endings.begin(), endings.end(),
                                 [](const Ending& ending) { return ending.code == ErrorCode::mismatch; });
  CHECK(saw >= 1);
  for (const Ending& ending : endings) {
    CHECK((ending.code == ErrorCode::mismatch || ending.code == ErrorCode::aborted));
    CHECK(ending.says("have not made the same calls"));
    CHECK(ending.seconds < kPromptSeconds);
  }
}

}  // namespace

TEST_CASE("native: calls that do not match are a mismatch, and all ranks learn it", "[shm]") {
  const NativeCall barrier, allreduce{.collective = Collective::allreduce, .count = 10};
  check_mismatch(barrier, allreduce, 2);
  check_mismatch(allreduce, {.collective = Collective::allreduce, .count = 500'000}, 2);
  check_mismatch({.collective = Collective::broadcast, .count = 10}, barrier, 2);
  check_mismatch(allreduce, barrier, 3);
  check_mismatch(allreduce, {.collective = Collective::allreduce, .count = 11}, 3);
  check_mismatch({.collective = Collective::alltoall, .count = 300'000}, allreduce, 3);
  check_mismatch({.collective = Collective::scan, .count = 10}, allreduce, 3);
  check_mismatch(barrier, {.collective = Collective::gather, .count = 10}, 3);
  check_mismatch({.collective = Collective::reduce, .count = 10}, {.collective = Collective::reduce, .count = 11}, 3);
}

TEST_CASE("native: a rank that leaves instead of taking part is a lost peer for all", "[shm]") {
  for (const int size : {2, 3, 4}) {
    require_well(run_ranks(size, [&](int rank, ShmChannel& channel) {
      make_call<Item>(channel, {.collective = Collective::allreduce, .count = 10}, rank, size, 0);
      if (rank == 1) return;
      Ending ending;
      for (std::uint64_t number = 1; !ending.code && number < 3; ++number)
        ending = native_ending(channel, {.collective = Collective::allreduce, .count = 100}, rank, size, number);
      expect(ending.code == ErrorCode::peer_lost && ending.rank == 1, ending.text);
      expect(ending.seconds < kPromptSeconds, "promptly");
    }));
  }
}

TEST_CASE("native: an absent rank is a timeout that names it, on time; the others are told", "[shm]") {
  require_well(run_ranks(3, [](int rank, ShmChannel& channel) {
    const NativePart<Item> part({.collective = Collective::allreduce, .count = 10}, rank, 3, 0);
    if (rank == 2) {  // comes too late
      const Ending told = ending_of([&] { wait_for(channel, channel.post_recv(1, 1, TensorView())); });
      expect(told.code == ErrorCode::aborted && told.says("timed out"), told.text);
      const Ending later = ending_of([&] { run_native(channel, part.request()); });
      expect(later.code == ErrorCode::aborted && later.seconds < kPromptSeconds, later.text);
      return;
    }
    const Ending ending = ending_of([&] { run_native(channel, part.request(), rank == 1 ? 3s : 20s); });
    if (rank == 0) return expect(ending.code == ErrorCode::aborted && ending.seconds < kPromptSeconds, ending.text);
    expect(ending.code == ErrorCode::timeout && ending.says("rank 2"), ending.text);
    expect(ending.seconds >= 3 && ending.seconds < kPromptSeconds, fmt::format("{} s", ending.seconds));
  }));
}

TEST_CASE("native: abort from another thread ends the wait of all ranks with its cause", "[shm]") {
  require_well(run_ranks(3, [](int rank, ShmChannel& channel) {
    const NativePart<Item> part({.collective = Collective::allgather, .count = 10}, rank, 3, 0);
    if (rank == 2) {
      const Ending told = ending_of([&] { wait_for(channel, channel.post_recv(1, 1, TensorView())); });
      return expect(told.code == ErrorCode::aborted, told.text);
    }
    const auto run = [&](WaitContext& wait) { channel.native(part.request(), wait); };
    const Ending ending =
        rank == 0 ? ending_when_aborted(channel, run) : ending_of([&] { run_native(channel, part.request(), 20s); });
    expect(ending.code == ErrorCode::aborted && ending.says("the test says stop"), ending.text);
    expect(ending.seconds < kPromptSeconds, fmt::format("{} s", ending.seconds));
  }));
}

TEST_CASE("native: the job's abort cause ends the wait and is what it throws", "[shm]") {
  const auto page = ControlPage::in_memory(2);
  page->abort({ErrorCode::peer_lost, 7, "rank 7 fell over"});
  require_well(run_ranks(2, [&](int rank, ShmChannel& channel) {
    const NativePart<Item> part({.collective = Collective::reduce, .count = 10, .root = 0}, rank, 2, 0);
    if (rank == 1) {
      const Ending told = ending_of([&] { wait_for(channel, channel.post_recv(0, 1, TensorView())); });
      return expect(told.code == ErrorCode::peer_lost && told.rank == 7, told.text);
    }
    WaitContext wait(Deadline::after(20s), page.get());
    const Ending ending = ending_of([&] { channel.native(part.request(), wait); });
    expect(ending.code == ErrorCode::peer_lost && ending.says("rank 7 fell over"), ending.text);
    expect(ending.seconds < kPromptSeconds, "promptly");
  }));
}
