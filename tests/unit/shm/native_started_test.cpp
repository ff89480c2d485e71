// Collectives over shared memory that are started, and moved on a little at a time.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/native_calls.hpp"
#include "unit/shm/shm_ranks.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

using Item = std::int32_t;

Ticket start(ShmChannel& channel, const Request& request) {
  WaitContext wait = wait_for(20s);
  return channel.start_native(request, wait);
}

// test() until it says that the call has ended, or throws.
void poll(ShmChannel& channel, Ticket ticket, Duration limit = 20s) {
  for (const Deadline deadline = Deadline::after(limit); !channel.test(ticket);) {
    expect(!deadline.expired(), "a started call does not end");
    std::this_thread::yield();
  }
}

struct Started {
  std::unique_ptr<NativePart<Item>> part;
  Ticket ticket;
};

// Random calls: some block, others are started and come to their end by test() or wait() later, in any order.
void check_mix(int size, int calls, std::uint64_t seed) {
  const auto endings = run_ranks(size, [&](int rank, ShmChannel& channel) {
    // `common` draws the same on all ranks.
    std::mt19937_64 common(seed), own(seed + static_cast<std::uint64_t>(rank) + 1);
    const auto draw = [](std::mt19937_64& random, std::size_t n) {
      return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    std::deque<Started> in_flight;
    const auto end_one = [&](std::size_t at) {
      const Started started = std::move(in_flight[at]);
      in_flight.erase(in_flight.begin() + static_cast<std::ptrdiff_t>(at));
      if (draw(own, 2) == 0)
        poll(channel, started.ticket);
      else
        wait_for(channel, started.ticket);
      started.part->check();
    };
    for (int i = 0; i < calls; ++i) {
      const auto number = static_cast<std::uint64_t>(i);
      const std::size_t kind = draw(common, 16);
      const std::size_t count = kind == 0 ? draw(common, 200'000) : kind < 4 ? draw(common, 5'000) : draw(common, 70);
      const auto& entries = shm_backend::native_entries();
      const auto all = calls_of(entries[draw(common, entries.size())], count, size, draw(common, 2) == 0);
      const NativeCall call = all[draw(common, all.size())];
      if (draw(common, 4) == 0) {
        make_call<Item>(channel, call, rank, size, number);
      } else {
        auto part = std::make_unique<NativePart<Item>>(call, rank, size, number);
        const Ticket ticket = start(channel, part->request());
        in_flight.push_back({std::move(part), ticket});
      }
      if (!in_flight.empty() && draw(own, 3) == 0) channel.test(in_flight[draw(own, in_flight.size())].ticket);
      while (in_flight.size() > draw(own, 6)) end_one(draw(own, in_flight.size()));
    }
    while (!in_flight.empty()) end_one(draw(own, in_flight.size()));
  });
  INFO(size << " ranks, seed " << seed << "\n" << show(endings));
  CHECK(all_well(endings));
}

const NativeCall kLong{.collective = Collective::allreduce, .count = 3'000'000};

}  // namespace

TEST_CASE("native: started calls give what blocking ones give, in any mix and in any order of ends", "[shm]") {
  const std::uint64_t seed = std::random_device{}();
  for (const int size : {2, 3, 5}) check_mix(size, 300, seed);
}

TEST_CASE("native: a rank that waits for a message moves the calls on that it has started", "[shm]") {
  require_well(run_ranks(2, [](int rank, ShmChannel& channel) {
    const NativePart<Item> part(kLong, rank, 2, 0);
    const Ticket ticket = start(channel, part.request());
    std::vector<Item> word(1, rank);
    if (rank == 0) {  // sends only when the call has ended here, which needs the other rank
      wait_for(channel, ticket);
      send(channel, 1, 1, word);
    } else {
      recv(channel, 0, 1, word);
      expect(word[0] == 0, "the message");
      wait_for(channel, ticket);
    }
    part.check();
  }));
}

TEST_CASE("native: a start does not wait for the others, and test() of a call that they have not made does not",
          "[shm]") {
  require_well(run_ranks(2, [](int rank, ShmChannel& channel) {
    const NativePart<Item> first(kLong, rank, 2, 0), second(kLong, rank, 2, 1);
    std::vector<Item> word(1);
    if (rank == 0) {
      const Ticket a = start(channel, first.request()), b = start(channel, second.request());
      expect(!channel.test(b), "the second call has ended before the other rank has made it");
      send(channel, 1, 1, word);  // only now may the other rank begin
      poll(channel, b);
      expect(channel.test(a).has_value(), "calls end in their order");
    } else {
      recv(channel, 0, 1, word);
      run_native(channel, first.request());
      run_native(channel, second.request());
    }
    first.check();
    second.check();
  }));
}

TEST_CASE("native: test() finds that the others have made another call", "[shm]") {
  require_well(run_ranks(3, [](int rank, ShmChannel& channel) {
    const NativePart<Item> part({.collective = Collective::allreduce, .count = rank == 1 ? 11U : 10U}, rank, 3, 0);
    Request request = part.request();
    request.fingerprint += part.request().in.count;
    const Ticket ticket = start(channel, request);
    const Ending ending = ending_of([&] { poll(channel, ticket); });
    expect(ending.code == ErrorCode::mismatch || ending.code == ErrorCode::aborted, ending.text);
    expect(ending.says("rank 1 is the odd one") && ending.says("have not made the same calls"), ending.text);
    expect(ending.seconds < kPromptSeconds, "promptly");
  }));
}

TEST_CASE("native: test() and wait() of a started call tell of a rank that has left", "[shm]") {
  for (const bool polls : {true, false}) {
    require_well(run_ranks(2, [&](int rank, ShmChannel& channel) {
      make_call<Item>(channel, {}, rank, 2, 0);
      if (rank == 1) return;
      const NativePart<Item> part(kLong, rank, 2, 1);
      const Ticket ticket = start(channel, part.request());
      const Ending ending = ending_of([&] {
        if (polls) return poll(channel, ticket);
        wait_for(channel, ticket);
      });
      expect(ending.code == ErrorCode::peer_lost && ending.rank == 1, ending.text);
      expect(ending.seconds < kPromptSeconds, "promptly");
    }));
  }
}

TEST_CASE("native: after the group has ended, test() of a started call says why", "[shm]") {
  require_well(run_ranks(2, [](int rank, ShmChannel& channel) {
    const NativePart<Item> part(kLong, rank, 2, 0);
    std::vector<Item> word(1);
    if (rank == 1) {
      recv(channel, 0, 1, word);
      return channel.abort(Error(ErrorCode::aborted, "the test says stop"));
    }
    const Ticket ticket = start(channel, part.request());
    send(channel, 1, 1, word);
    for (int i = 0; i < 2; ++i) {
      const Ending ending = ending_of([&] { poll(channel, ticket); });
      expect(ending.code == ErrorCode::aborted && ending.says("the test says stop"), ending.text);
    }
  }));
}

TEST_CASE("native: a ticket that was never given is refused", "[shm]") {
  require_well(run_ranks(2, [](int rank, ShmChannel& channel) {
    const NativePart<Item> part({}, rank, 2, 0);
    Ticket ticket = start(channel, part.request());
    wait_for(channel, ticket);
    ++ticket.id;
    expect(ending_of([&] { channel.test(ticket); }).code == ErrorCode::invalid_argument, "test()");
  }));
}
