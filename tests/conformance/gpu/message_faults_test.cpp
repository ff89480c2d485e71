// Looks at what NCCL gets of messages that a function waits for, and when.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "conformance/gpu/faults.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

using Array = GpuArray<std::int32_t>;
using Values = std::vector<std::int32_t>;

constexpr std::size_t kMessageCount = 50;

// Both ranks would send first, each alone, and neither would come to its receive.
TEST_CASE("gpu messages: a function that waits for one hands over nothing that is posted later", "[gpu]") {
  // So many messages connect the ranks, and so many receives have a function.
  constexpr std::size_t kConnecting = 6, kReceives = 2;
  std::latch posted(2), looked(2);
  fake_nccl_reset();
  check_good(run_gpu_ranks(3, [&](Group& group, int rank) {
    const Array own(rank, Values(kMessageCount, rank)), theirs(rank, Values(kMessageCount, -1)),
        first(rank, Values(kMessageCount, -1)), second(rank, Values(kMessageCount, -1));
    for (const int shift : {1, 2}) {
      Work received = group.irecv(theirs, (rank + 3 - shift) % 3), sent = group.isend(own, (rank + shift) % 3);
      const std::vector<Work> both{received, sent};
      for (Work work : both) work.wait();
    }
    group.barrier();
    if (rank == 2) {
      expect_soon("the others do not look", [&] { return looked.try_wait(); });
      std::vector<Work> sent;
      for (const int peer : {0, 1}) {
        for (std::size_t i = 0; i < kReceives; ++i) sent.push_back(group.isend(own, peer));
      }
      wait_all(sent);
      return;
    }
    const int peer = 1 - rank;
    // NCCL may still be taking the first one when the second one has its function.
    const auto nothing = [](const std::optional<Error>&) {};
    Work after_first = group.irecv(first, 2).then(nothing), after_second = group.irecv(second, 2).then(nothing);
    Work sent = group.isend(own, peer);
    posted.count_down();
    expect_soon("NCCL does not get what has a function",
                [&] { return posted.try_wait() && fake_nccl_calls("ncclRecv") == kConnecting + 2 * kReceives; });
    std::this_thread::sleep_for(100ms);  // the subject of the test: nobody waits for what was sent
    expect(fake_nccl_calls("ncclSend") == kConnecting, "a send was handed over before its receive was posted");
    looked.count_down();
    expect_soon("the other does not look", [&] { return looked.try_wait(); });
    Work received = group.irecv(theirs, peer);
    std::vector<Work> all{sent, received, after_first, after_second};
    wait_all(all);
    expect(theirs.values() == Values(kMessageCount, peer), "the exchange");
    expect(first.values() == Values(kMessageCount, 2) && second.values() == first.values(), "what came late");
  }));
}

// Messages end in their order. A look at each of them would make it n² for n messages, every time that one is started,
// tested, or waited for by a function.
TEST_CASE("gpu messages: however many are in flight, a look at them asks NCCL as often as one takes", "[gpu]") {
  constexpr std::size_t kMany = 100;
  std::latch idle(1), looked(1);
  fake_nccl_reset();
  check_good(run_gpu_ranks(2, [&](Group& group, int rank) {
    const Array own(rank, Values(kMany, rank)), theirs(rank, Values(kMany, -1));
    group.sendrecv(own, 1 - rank, theirs, 1 - rank);
    group.barrier();
    std::vector<Work> works;
    if (rank == 1) {
      idle.count_down();
      expect_soon("the other does not look", [&] { return looked.try_wait(); });
      for (std::size_t i = 0; i < kMany; ++i) works.push_back(group.isend(own.part(i, 1), 0));
      wait_all(works);
      return;
    }
    expect_soon("the other does not come", [&] { return idle.try_wait(); });
    const auto asked = [before = fake_nccl_calls("ncclCommGetAsyncError")] {
      return fake_nccl_calls("ncclCommGetAsyncError") - before;
    };
    for (std::size_t i = 0; i < kMany; ++i) works.push_back(group.irecv(theirs.part(i, 1), 1));
    expect(asked() <= 2 * kMany, "every start looks at all of them");
    for (Work& work : works) expect(!work.test(), "nothing was sent");
    expect(asked() <= 4 * kMany, "every test looks at all of them");
    std::atomic<std::size_t> run = 0;
    for (Work& work : works) work = work.then([&](const std::optional<Error>&) { ++run; });
    looked.count_down();
    wait_all(works);
    expect(run == kMany, "every function has run");
    expect(theirs.values() == Values(kMany, 1), "what was sent");
  }));
}

// As one group, or a send that goes alone holds up the receive that the peer waits for first.
TEST_CASE("gpu messages: what is sent to oneself hands over nothing that was posted before", "[gpu]") {
  std::latch looked(2);
  fake_nccl_reset();
  check_good(run_gpu_ranks(2, [&](Group& group, int rank) {
    const int peer = 1 - rank;
    const Array own(rank, Values(kMessageCount, rank)), theirs(rank, Values(kMessageCount, -1)),
        copy(rank, Values(kMessageCount, -1));
    group.sendrecv(own, peer, theirs, peer);
    group.barrier();
    const std::size_t before = 2;
    Work sent = group.isend(own, peer);
    Work to_self = group.isend(own, rank);
    expect(fake_nccl_calls("ncclSend") == before, "a send was handed over before its receive was posted");
    looked.count_down();
    expect_soon("the other does not look", [&] { return looked.try_wait(); });
    std::vector<Work> all{sent, group.irecv(theirs, peer), to_self, group.irecv(copy, rank)};
    wait_all(all);
    expect(theirs.values() == Values(kMessageCount, peer), "the exchange");
    expect(copy.values() == Values(kMessageCount, rank), "what was sent to oneself");
  }));
}

}  // namespace
}  // namespace col::test
