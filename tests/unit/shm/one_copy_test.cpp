// Large messages that the receiver reads where they are: what arrives, and what may not.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/one_copy.hpp"
#include "support/catch.hpp"
#include "support/jumping_time.hpp"
#include "support/temp_dir.hpp"
#include "unit/shm/shm_ranks.hpp"

namespace col::test::one_copy {
namespace {

using namespace shm_backend;
using namespace std::chrono_literals;

constexpr std::size_t kKib = 1024, kMib = kKib * kKib;

Tuner with(KernelCopies copies, std::uint64_t before_trials = 0) {
  return [=](const Segment& segment, int processors) {
    Tuning tuning = decide(shape_of(segment, processors), {.copies = copies});
    tuning.before_trials = before_trials;
    return tuning;
  };
}

void fill(std::vector<std::uint8_t>& data, int sender, std::size_t number) {
  for (std::size_t i = 0; i < data.size(); i += 64)
    data[i] = static_cast<std::uint8_t>(i / 64 + number * 7 + static_cast<std::size_t>(sender) * 31);
}

TensorView view(std::vector<std::uint8_t>& data) {
  return {data.data(), data.size(), DType::uint8};
}

// Ranks in a ring send messages of any size to the next one; receives are posted before or after they come.
void check_messages(const Tuner& tuner) {
  constexpr int kRanks = 3;
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  require_well(run_ranks(
      kRanks,
      [&](int rank, ShmChannel& channel) {
        std::mt19937 common(seed);
        for (std::size_t number = 0; number < 120; ++number) {
          const std::size_t bytes = number % 10 == 0 ? 3 * kMib + common() % kMib : common() % (300 * kKib);
          const bool is_late = common() % 2 == 0, from_any = common() % 3 == 0;
          const int next = (rank + 1) % kRanks, last = (rank + kRanks - 1) % kRanks;
          std::vector<std::uint8_t> sent(bytes), taken(bytes), wanted(bytes);
          fill(sent, rank, number);
          fill(wanted, last, number);
          WaitContext wait = wait_for(kDeadline);
          std::optional<Ticket> receives;
          const auto receive = [&] { receives = channel.post_recv(from_any ? kAnyPeer : last, number, view(taken)); };
          if (!is_late) receive();
          const Ticket sends = channel.post_send(next, number, view(sent));
          if (is_late) receive();
          expect(channel.wait(*receives, wait) == last, "the sender is named");
          channel.wait(sends, wait);
          expect(taken == wanted, fmt::format("message {} of {} bytes", number, bytes));
        }
      },
      tuner));
}

// How the next message goes whose way is asked for here: an offer of this process.
struct Receiver {
  OneCopy one_copy;
  Tuning tuning;
  std::uint64_t proof = 4711;

  Receiver() { tuning.tries = 1; }
  Offer offer() const {
    return {.pid = ::getpid(), .proof_at = reinterpret_cast<std::uintptr_t>(&proof), .proof = proof, .data = 1};
  }
  bool next(std::uint64_t bytes = kMib) { return one_copy.begin(this, offer(), bytes, tuning); }
};

}  // namespace

TEST_CASE("one copy: messages arrive whole, whichever way they go", "[shm]") {
  check_messages(with(KernelCopies::on));
  check_messages(with(KernelCopies::off));
  check_messages(with(KernelCopies::automatic));
}

TEST_CASE("one copy: what is offered", "[shm]") {
  Tuning tuning;
  const auto offers = [&](KernelCopies copies, bool tries, std::uint64_t bytes = kMib) {
    tuning.copies = copies;
    tuning.tries = tries ? 1 : 0;
    return OneCopy::may_be_faster(tuning, bytes);
  };
  CHECK(offers(KernelCopies::automatic, true));
  CHECK_FALSE(offers(KernelCopies::automatic, true, OneCopy::kLeast - 1));
  CHECK_FALSE(offers(KernelCopies::automatic, false));
  CHECK(offers(KernelCopies::on, false));
  CHECK_FALSE(offers(KernelCopies::off, true));
}

TEST_CASE("one copy: a process that is another one is not read", "[shm]") {
  Receiver receiver;
  receiver.tuning.copies = KernelCopies::on;
  Offer other = receiver.offer();
  other.proof += 1;
  CHECK_FALSE(receiver.one_copy.begin(&receiver, other, kMib, receiver.tuning));
  CHECK_FALSE(receiver.next());  // from then on
}

TEST_CASE("one copy: after a refusal, no message is read any more", "[shm]") {
  Receiver receiver;
  receiver.tuning.copies = KernelCopies::on;
  CHECK(receiver.next());
  const std::uint64_t from = 5;
  std::uint64_t to = 0;
  CHECK(receiver.one_copy.read(reinterpret_cast<std::uintptr_t>(&from), &to, sizeof to) == sizeof to);
  CHECK(to == 5);
  CHECK(receiver.one_copy.read(1, &to, sizeof to) == 0);
  CHECK_FALSE(receiver.next());
}

TEST_CASE("one copy: most messages go the way that is faster here", "[shm]") {
  for (const bool kernel_is_faster : {true, false}) {
    JumpingTime time;
    Receiver receiver;
    int by_kernel = 0;
    constexpr int kMessages = 2000;
    for (int i = 0; i < kMessages; ++i) {
      const bool is_read = receiver.next();
      by_kernel += is_read ? 1 : 0;
      time.poll({}, time.now() + (is_read == kernel_is_faster ? 50us : 80us));
      receiver.one_copy.ended(&receiver);
    }
    CHECK((kernel_is_faster ? kMessages - by_kernel : by_kernel) < kMessages / 20);
  }
}

TEST_CASE("one copy: a message whose sender has left the group never arrives", "[shm]") {
  for (const KernelCopies copies : {KernelCopies::on, KernelCopies::off}) {
    const auto store = make_memory_store();
    LocalSegments local;
    std::atomic<bool> has_left{false};
    std::vector<std::uint8_t> sent(kMib, 1), taken(kMib);
    const auto endings = run_each(2, [&](int rank) {
      auto channel = connect({.rank = rank, .size = 2, .store = store, .local = &local, .tuner = with(copies)});
      if (rank == 0) {
        channel->post_send(1, 1, view(sent));
        channel.reset();
        std::fill(sent.begin(), sent.end(), std::uint8_t{2});
        has_left = true;
        return;
      }
      while (!has_left) ::sched_yield();
      WaitContext wait = wait_for(kDeadline);
      channel->wait(channel->post_recv(0, 1, view(taken)), wait);
    });
    CHECK(endings[1].code == ErrorCode::peer_lost);
    CHECK(endings[1].says("rank 0 left the group"));
  }
}

TEST_CASE("one copy: where the kernel lets nobody read, messages go through the rings", "[shm]") {
  const TempDir folder;
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto channel = connect(
          {.rank = rank, .size = 2, .store = make_file_store(folder / "store"), .tuner = with(KernelCopies::on)});
      // Root may read every process; another user reads none of those that say so.
      if (::geteuid() == 0) expect(::setresuid(65534, 65534, 65534) == 0, "another user");
      ::prctl(PR_SET_DUMPABLE, 0);
      std::vector<std::uint8_t> sent(kMib), taken(kMib), wanted(kMib);
      for (std::size_t number = 0; number < 4; ++number) {
        fill(sent, rank, number);
        fill(wanted, 1 - rank, number);
        WaitContext wait = wait_for(kDeadline);
        const Ticket sends = channel->post_send(1 - rank, number, view(sent));
        channel->wait(channel->post_recv(1 - rank, number, view(taken)), wait);
        channel->wait(sends, wait);
        expect(taken == wanted, "what was sent");
      }
    });
  }
  for (auto& rank : ranks) CHECK(rank.wait().text == "");
}

}  // namespace col::test::one_copy
