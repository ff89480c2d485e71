// What every backend must do, run on each one that is registered, through the public interface: collectives, the end of
// a channel, the registry. Messages: messages_test.cpp.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <col/backend.hpp>

#include "conformance/backend/backend_ranks.hpp"
#include "support/catch.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

std::vector<std::int32_t> sum_of_inputs(int size, std::size_t count) {
  std::vector<std::int32_t> sum(count);
  for (int r = 0; r < size; ++r) {
    const auto in = input_of(r, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += in[i];
  }
  return sum;
}

std::vector<std::int32_t> all_inputs(int size, std::size_t count) {
  std::vector<std::int32_t> all;
  for (int r = 0; r < size; ++r) {
    const auto in = input_of(r, count);
    all.insert(all.end(), in.begin(), in.end());
  }
  return all;
}

constexpr std::size_t kCounts[] = {0, 1, 3, 4, 1021, 60'000};

}  // namespace

TEST_CASE("backend: reductions give every rank the sum and leave the inputs alone", "[backend]") {
  on_every_backend([](BackendRank& self) {
    for (const std::size_t count : kCounts) {
      const auto in = input_of(self.rank, count);
      std::vector<std::int32_t> out(count);
      const auto sum = sum_of_inputs(self.size, count);
      self.each_entry(
          {.collective = Collective::allreduce, .in = in, .out = out}, [&] { std::fill(out.begin(), out.end(), -1); },
          [&] { expect(out == sum, "allreduce"); });
      const int root = self.size - 1;
      self.each_entry(
          {.collective = Collective::reduce, .in = in, .out = out, .root = root},
          [&] { std::fill(out.begin(), out.end(), -1); },
          [&] { expect(out == (self.rank == root ? sum : std::vector<std::int32_t>(count, -1)), "reduce"); });
      expect(in == input_of(self.rank, count), "inputs are only read");
    }
  });
}

TEST_CASE("backend: data moves to where each collective says", "[backend]") {
  on_every_backend([](BackendRank& self) {
    const auto n = static_cast<std::size_t>(self.size);
    const bool is_root = self.rank == 0;
    for (const std::size_t count : kCounts) {
      const auto in = input_of(self.rank, count);
      const auto all = all_inputs(self.size, count);
      const std::vector<std::int32_t> untouched(count * n, -1);
      std::vector<std::int32_t> one(count), many(count * n);
      const auto reset = [&] {
        one = is_root ? in : std::vector<std::int32_t>(count, -1);
        many = untouched;
      };
      reset();
      self.each_entry({.collective = Collective::broadcast, .out = one}, reset,
                      [&] { expect(one == input_of(0, count), "broadcast"); });
      reset();
      self.each_entry(
          {.collective = Collective::allgather, .in = in, .out = many}, [] {},
          [&] { expect(many == all, "allgather"); });
      reset();
      self.each_entry(
          {.collective = Collective::gather, .in = in, .out = many}, [] {},
          [&] { expect(many == (is_root ? all : untouched), "gather"); });
      std::vector<std::int32_t> block(count, -1);
      self.each_entry(
          {.collective = Collective::scatter, .in = all, .out = block}, [] {}, [&] { expect(block == in, "scatter"); });
      const auto mine = input_of(self.rank, count * n);
      reset();
      self.each_entry(
          {.collective = Collective::alltoall, .in = mine, .out = many}, [] {},
          [&] {
            for (std::size_t i = 0; i < many.size(); ++i) {
              const auto from = static_cast<int>(i / count);
              const std::size_t place = static_cast<std::size_t>(self.rank) * count + i % count;
              expect(many[i] == 1000 * from + static_cast<std::int32_t>(place), "alltoall");
            }
          });
    }
  });
}

TEST_CASE("backend: counts may differ by rank, and be zero", "[backend]") {
  on_every_backend([](BackendRank& self) {
    std::vector<std::size_t> counts;
    std::vector<std::int32_t> wanted;
    for (int r = 0; r < self.size; ++r) {
      counts.push_back(static_cast<std::size_t>(r % 3) * 50);
      const auto in = input_of(r, counts.back());
      wanted.insert(wanted.end(), in.begin(), in.end());
    }
    const auto in = input_of(self.rank, counts[static_cast<std::size_t>(self.rank)]);
    std::vector<std::int32_t> out(wanted.size(), -1);
    self.each_entry(
        {.collective = Collective::allgatherv, .in = in, .out = out, .out_counts = counts}, [] {},
        [&] { expect(out == wanted, "allgatherv"); });

    // Rank a sends (a + b) elements to rank b, all of them 10 a + b.
    std::vector<std::size_t> in_counts, out_counts;
    std::vector<std::int32_t> send, recv, expected;
    for (int r = 0; r < self.size; ++r) {
      in_counts.push_back(static_cast<std::size_t>(self.rank + r));
      send.insert(send.end(), in_counts.back(), 10 * self.rank + r);
      expected.insert(expected.end(), in_counts.back(), 10 * r + self.rank);
    }
    recv.assign(expected.size(), -1);
    out_counts = in_counts;
    self.each_entry(
        {.collective = Collective::alltoallv,
         .in = send,
         .out = recv,
         .in_counts = in_counts,
         .out_counts = out_counts},
        [] {}, [&] { expect(recv == expected, "alltoallv"); });
  });
}

TEST_CASE("backend: nobody leaves a barrier before all have entered", "[backend]") {
  // Shared by the forked ranks, each of which counts itself in before it enters.
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  auto* const entered = new (page) std::atomic<int>(0);
  on_every_backend([&](BackendRank& self) {
    if (!self.has(Collective::barrier)) return;
    const auto meet = [&] {
      self.each_entry(
          {.collective = Collective::barrier}, [] {}, [] {});
    };
    for (int round = 0; round < 50; ++round) {
      if (self.rank == 0) entered->store(0);
      meet();
      entered->fetch_add(1);
      meet();
      expect(entered->load() == self.size, "everybody has entered");
      meet();  // before the next round's zero
    }
  });
  munmap(page, 4096);
}

TEST_CASE("backend: a wait ends at its deadline, then everything says what the first cause was", "[backend]") {
  on_every_backend([](BackendRank& self) {
    if (self.size == 1) return;
    std::vector<std::int32_t> data(1);
    const auto code_of = [&](Duration timeout) {
      try {
        WaitContext wait(Deadline::after(timeout));
        const Ticket ticket = self.channel.post_recv((self.rank + 1) % self.size, 4711, data);
        self.channel.wait(ticket, wait);
      } catch (const Error& error) {
        return error.code();
      }
      return ErrorCode::internal;
    };
    const ErrorCode first = code_of(200ms);
    // Whoever gives up first ends the channel, which the others may see before their own deadline.
    expect(first == ErrorCode::timeout || first == ErrorCode::peer_lost || first == ErrorCode::aborted,
           std::string(to_string(first)));
    expect(code_of(10s) == ErrorCode::aborted, "a broken channel refuses calls");
  });
}

TEST_CASE("backend: abort ends the waits of the peers too", "[backend]") {
  on_every_backend([](BackendRank& self) {
    if (self.size == 1) return;
    std::vector<std::int32_t> data(1);
    const auto start = std::chrono::steady_clock::now();
    if (self.rank == 0) {
      self.channel.abort(Error(ErrorCode::aborted, "enough"));
      return;
    }
    try {
      WaitContext wait(Deadline::after(20s));
      self.channel.wait(self.channel.post_recv(0, 1, data), wait);
      expect(false, "rank 0 never sends");
    } catch (const Error& error) {
      expect(error.code() == ErrorCode::peer_lost || error.code() == ErrorCode::aborted, error.what());
    }
    expect(std::chrono::steady_clock::now() - start < 5s, "promptly");
  });
}

TEST_CASE("backend: the registry refuses a second backend of a name, and finds none that is not there", "[backend]") {
  class Nothing final : public BackendFactory {
   public:
    std::string_view name() const override { return "nothing"; }
    std::optional<std::string> unavailable_reason() const override { return "it is a test's"; }
    std::unique_ptr<Channel> connect(const ConnectRequest&, WaitContext&) override { return nullptr; }
    std::string describe(const ConnectRequest&) const override { return "nothing"; }
  };
  CHECK(find_backend("nothing") == nullptr);
  register_backend(std::make_unique<Nothing>());
  REQUIRE(find_backend("nothing") != nullptr);
  CHECK(find_backend("nothing")->name() == "nothing");
  try {
    register_backend(std::make_unique<Nothing>());
    FAIL("registered twice");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::already_initialized);
    CHECK(error.message().find("'nothing'") != std::string::npos);
  }
}
