// Small messages for which no operation is made, and calls that come again, of which the first part goes out before
// the rest: they do what any others do, or nothing has happened.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "unit/shm/again.hpp"
#include "unit/shm/shm_ranks.hpp"

namespace col::test::at_once {
namespace {

using Data = std::vector<std::int32_t>;

constexpr std::uint64_t slot(std::uint64_t number) {
  return number << 32;
}

void post(ShmChannel& channel, std::uint64_t where, const Data& data) {
  WaitContext wait = wait_for(std::chrono::seconds(20));
  channel.wait(channel.post_send(1, where, data), wait);
}

Data take(ShmChannel& channel, std::uint64_t where, std::size_t count) {
  Data data(count, -1);
  WaitContext wait = wait_for(std::chrono::seconds(20));
  channel.wait(channel.post_recv(0, where, data), wait);
  return data;
}

bool takes_at_once(ShmChannel& channel, std::uint64_t where, const Data& expected) {
  Data data(expected.size(), -1);
  if (channel.receive_immediate(0, where, data)) return data == expected;
  expect(data == Data(data.size(), -1), "untouched");
  return false;
}

TEST_CASE("at once: a small message arrives, or nothing has happened", "[shm]") {
  std::atomic<int> arrived{0};
  const auto endings = run_ranks(2, [&](int rank, ShmChannel& channel) {
    const bool sends = rank == 0;
    auto next = [&, until = 0]() mutable {  // both have come here
      ++arrived;
      until += 2;
      for (const Deadline deadline = Deadline::after(std::chrono::seconds(20)); arrived < until;
           std::this_thread::yield())
        expect(!deadline.expired(), "the other rank comes, too");
    };
    if (sends) expect(!channel.send_immediate(1, slot(1), Data{1}), "the first one needs the ring's memory");
    if (sends) post(channel, slot(1), {1});
    next();
    if (!sends) expect(!takes_at_once(channel, slot(1), {1}), "it has not seen yet that this peer sends");
    if (!sends) expect(take(channel, slot(1), 1) == Data{1});
    next();  // or it would take in the next one, too

    if (sends) expect(channel.send_immediate(1, slot(1), Data{2, 3}));
    next();
    if (!sends) {
      expect(!takes_at_once(channel, slot(2), {2, 3}), "another slot");
      expect(!takes_at_once(channel, slot(1), {2}), "another length");
      expect(takes_at_once(channel, slot(1), {2, 3}));
      expect(!takes_at_once(channel, slot(1), {2, 3}), "it is taken");
    }
    next();

    // One that came before its receive, while another was waited for.
    if (sends) expect(channel.send_immediate(1, slot(1), Data{4}) && channel.send_immediate(1, slot(2), Data{5}));
    if (sends) expect(channel.send_immediate(1, slot(1), Data{6}));
    next();
    if (!sends) {
      expect(take(channel, slot(2), 1) == Data{5});
      expect(!takes_at_once(channel, slot(1), {4}) && !takes_at_once(channel, slot(1), {6}), "4 is kept elsewhere");
      expect(take(channel, slot(1), 1) == Data{4} && take(channel, slot(1), 1) == Data{6});
    }
    next();

    const Data large(20'000, 7);
    if (sends) {
      expect(!channel.send_immediate(1, slot(1), large));
      post(channel, slot(1), large);
    } else {
      expect(!takes_at_once(channel, slot(1), large));
      expect(take(channel, slot(1), large.size()) == large);
    }
    next();

    // Several times around the ring. What does not go at once, as it needs more of the ring's memory, keeps its place.
    int at_once = 0;
    for (int turn = 0; turn < 20; ++turn) {
      for (int i = 0; i < 40; ++i) {
        const Data data(100, 1000 * turn + i);
        if (sends ? channel.send_immediate(1, slot(1), data) : takes_at_once(channel, slot(1), data))
          ++at_once;
        else if (sends)
          post(channel, slot(1), data);
        else
          expect(take(channel, slot(1), data.size()) == data, "in their order");
      }
      next();
    }
    expect(!sends || at_once > 400, "most go at once");

    channel.abort(Error(ErrorCode::aborted, "by the test", "g"));
    next();
    expect(!channel.send_immediate(1 - rank, slot(1), Data{8}), "broken");
  });
  require_well(endings);
}

// ---- Calls that come again

// In one place in memory, as the group layer keeps them.
class Caller {
 public:
  Caller(ShmChannel& channel, int rank, int size, int most = kMost) : channel_(channel), part_(rank, size, most) {}

  static constexpr int kMost = 64;

  // Returns whether it began at once.
  bool make(const Again& call, int step, bool tries, std::uint64_t fingerprint) {
    const Request& request = part_.prepare(call, step, fingerprint);
    if (!part_.is_again()) prepared_ = channel_.prepare(request);
    const bool begun = tries && part_.is_again() && prepared_ != nullptr && prepared_->begin();
    // Either of the two may follow. Of a call that has not begun, end() does nothing.
    const bool ended = step % 3 != 0 && prepared_ != nullptr && prepared_->end();
    expect(begun || !ended, "what has not begun has not ended");
    if (!ended) {
      WaitContext wait = wait_for(std::chrono::seconds(20));
      channel_.native(request, wait);
    }
    expect(part_.is_right(), "the result");
    return begun;
  }

 private:
  ShmChannel& channel_;
  AgainPart part_;
  std::unique_ptr<backend::PreparedNative> prepared_;  // for the call before
};

TEST_CASE("at once: a call that comes again gives what it should, whatever came in between", "[shm]") {
  constexpr Collective kAll[] = {Collective::allreduce, Collective::reduce,         Collective::broadcast,
                                 Collective::allgather, Collective::gather,         Collective::scatter,
                                 Collective::alltoall,  Collective::reduce_scatter, Collective::scan};
  constexpr int kCounts[] = {1, 2, 13, 26, 27, Caller::kMost};  // 26: what fits into the line of a flag
  const int size = GENERATE(2, 3, 5);
  const auto seed = std::random_device{}();
  std::atomic<int> begun{0};
  const auto endings = run_ranks(size, [&](int rank, ShmChannel& channel) {
    std::mt19937 common(seed), own(seed + static_cast<unsigned>(rank) + 1);
    Caller caller(channel, rank, size);
    Again call;
    for (int step = 0; step < 600; ++step) {
      if (step % 2 == 0 || common() % 4 == 0) {
        call.collective = kAll[common() % std::size(kAll)];
        call.count = kCounts[common() % std::size(kCounts)];
        call.root = static_cast<int>(common() % static_cast<unsigned>(size));
        call.op = common() % 2 == 0 ? ReduceOp::sum : ReduceOp::max;
      }
      begun += caller.make(call, step, own() % 2 == 0, static_cast<std::uint64_t>(step) + 1) ? 1 : 0;
    }
  });
  INFO(size << " ranks, seed " << seed << "\n" << show(endings));
  CHECK(all_well(endings));
  CHECK(begun > 50);
}

TEST_CASE("at once: large calls begin so until the group shares memory", "[shm]") {
  constexpr Collective kAll[] = {Collective::allreduce, Collective::allgather, Collective::gather,
                                 Collective::scatter,   Collective::broadcast, Collective::alltoall};
  constexpr int kLarge = 60'000, kSteps = 60;
  const int size = GENERATE(2, 3);
  const auto seed = std::random_device{}();
  std::atomic<int> begun_before{0}, begun_after{0};
  std::atomic<int> said{0};
  std::vector<std::string> words(100);  // of one exchange after the other
  const RankBody body = [&](int rank, ShmChannel& channel) {
    std::mt19937 common(seed), own(seed + static_cast<unsigned>(rank) + 1);
    Caller caller(channel, rank, size, kLarge);
    Again call;
    const auto repeat = [&](int from, std::atomic<int>& begun) {
      for (int step = from; step < from + kSteps; ++step) {
        if (step == 0 || step % 4 == 2) {  // the same call before and after the memory is shared
          call.collective = kAll[common() % std::size(kAll)];
          call.count = common() % 2 == 0 ? kLarge : kLarge - 1;
          call.root = static_cast<int>(common() % static_cast<unsigned>(size));
        }
        begun += caller.make(call, step, own() % 4 != 0, static_cast<std::uint64_t>(step) + 1) ? 1 : 0;
      }
    };
    repeat(0, begun_before);
    const auto exchange = [&, begin = 0](const std::string& own_words) mutable {
      words.at(static_cast<std::size_t>(begin + rank)) = own_words;
      ++said;
      for (const Deadline deadline = Deadline::after(std::chrono::seconds(20)); said < begin + size;
           std::this_thread::yield())
        expect(!deadline.expired(), "the others say something, too");
      const auto first = words.begin() + begin;
      begin += size;
      return std::vector<std::string>(first, first + size);
    };
    WaitContext wait = wait_for(std::chrono::seconds(20));
    const std::shared_ptr<void> memory = channel.allocate(4096, exchange, wait);
    expect(memory != nullptr, "memory that all share");
    repeat(kSteps, begun_after);
  };
  const auto endings = run_ranks(size, body, [](const shm_backend::Segment& segment, int processors) {
    return decide(shape_of(segment, processors), {.copies = shm_backend::KernelCopies::off});
  });
  INFO(size << " ranks, seed " << seed << "\n" << show(endings));
  CHECK(all_well(endings));
  CHECK(begun_before > 5);
  CHECK(begun_after == 0);
}

TEST_CASE("at once: a call that comes again beside another one is a mismatch on all ranks", "[shm]") {
  const auto endings = run_ranks(2, [&](int rank, ShmChannel& channel) {
    Caller caller(channel, rank, 2);
    const Again call{.collective = Collective::allreduce, .count = 2};
    caller.make(call, 0, false, 1);
    expect(caller.make(call, 1, true, 2), "it comes again");
    caller.make(call, 2, true, rank == 0 ? 3 : 4);
  });
  INFO(show(endings));
  // A rank that would find it a little later may be told by the other rank first.
  const bool first_finds = endings[0].code == ErrorCode::mismatch;
  CHECK(endings[first_finds ? 0 : 1].code == ErrorCode::mismatch);
  for (const Ending& ending : endings) {
    CHECK((ending.code == ErrorCode::mismatch ||
           (ending.code == ErrorCode::aborted && ending.says("ended the group (mismatch: "))));
    CHECK(ending.says("have not made the same calls"));
  }
}

}  // namespace
}  // namespace col::test::at_once
