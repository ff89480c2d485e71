// What every backend must do, run on each one that is registered, with ranks as processes, through the public
// interface.
//
// Catch2 means nothing in a forked child: a rank says with expect() what it wants, and the parent looks at how all
// ended.
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/backend.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace {

using namespace col;
using namespace std::chrono_literals;

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("not as expected: " + what);
}

// One rank as its body sees it.
struct Rank {
  int rank = 0;
  int size = 1;
  Channel& channel;
  std::uint64_t sequence = 0;

  // Stands in for the group layer's fingerprint.
  std::uint64_t next_slot() { return (++sequence) * 0x9e3779b97f4a7c15ULL; }
  bool has(Collective collective) const {
    for (const NativeEntry& entry : channel.native_entries()) {
      if (entry.collective == collective) return true;
    }
    return false;
  }
  // Every native entry of request.collective, one after the other; `prepare` before, `check` after each.
  void each_entry(Request request, const std::function<void()>& prepare, const std::function<void()>& check) {
    for (const NativeEntry& entry : channel.native_entries()) {
      if (entry.collective != request.collective) continue;
      request.algorithm = entry.name;
      request.fingerprint = next_slot();
      prepare();
      WaitContext wait(Deadline::after(20s));
      channel.native(request, wait);
      check();
    }
  }
};

using Body = std::function<void(Rank& rank)>;

// The child: connects, runs the body, writes what went wrong to `out`.
[[noreturn]] void be_rank(BackendFactory& factory, const std::string& directory, int rank, int size, const Body& body,
                          int out) {
  std::string problem;
  try {
    std::vector<PeerInfo> peers(static_cast<std::size_t>(size));
    for (int r = 0; r < size; ++r)
      peers[static_cast<std::size_t>(r)] = {
          .rank = r, .global_rank = r, .pid = 0, .hostname = "here", .boot_id = "b", .network_namespace = "n"};
    const ConnectRequest request{.group = "conformance",
                                 .rank = rank,
                                 .size = size,
                                 .store = make_file_store(directory),
                                 .peers = peers,
                                 .same_host = true,
                                 .token = 0xc01'c01ULL,
                                 .socket_ifname = {}};
    WaitContext wait(Deadline::after(20s));
    const auto channel = factory.connect(request, wait);
    Rank self{.rank = rank, .size = size, .channel = *channel};
    body(self);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const bool written = ::write(out, problem.data(), problem.size()) == static_cast<ssize_t>(problem.size());
  std::_Exit(problem.empty() && written ? 0 : 1);
}

// Runs `body` in `size` processes; one line per rank that did not end well. Ranks that outlive 60 s are killed.
std::string problems(BackendFactory& factory, int size, const Body& body) {
  const test::TempDir dir;
  struct Child {
    pid_t pid;
    int from;
  };
  std::vector<Child> children;
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      for (const Child& other : children) ::close(other.from);
      ::close(ends[0]);
      be_rank(factory, dir.path(), rank, size, body, ends[1]);
    }
    ::close(ends[1]);
    children.push_back({pid, ends[0]});
  }
  std::string text;
  const Deadline deadline = Deadline::after(60s);
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    pollfd entry{children[rank].from, POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining()).count();
    if (poll(&entry, 1, static_cast<int>(left)) <= 0) ::kill(children[rank].pid, SIGKILL);
    char words[2000];
    const ssize_t got = ::read(children[rank].from, words, sizeof(words));
    ::close(children[rank].from);
    int status = 0;
    waitpid(children[rank].pid, &status, 0);
    if (status != 0) {
      text += fmt::format("rank {} of {}: status {:#x} {}\n", rank, size, status,
                          std::string(words, got > 0 ? static_cast<std::size_t>(got) : 0));
    }
  }
  return text;
}

// The case on every backend that can be used here, and for 1, 2 and 4 ranks.
void on_every_backend(const Body& body) {
  int backends = 0;
  for (const std::string& name : backend_names()) {
    BackendFactory* const factory = find_backend(name);
    REQUIRE(factory != nullptr);
    if (factory->unavailable_reason()) continue;
    ++backends;
    for (const int size : {1, 2, 4}) {
      INFO("backend " << name << ", " << size << " ranks");
      CHECK(problems(*factory, size, body) == "");
    }
  }
  if (backends == 0) WARN("no backend is available in this build");
}

// What rank `rank` contributes: different on every rank and at every place.
std::vector<std::int32_t> input_of(int rank, std::size_t count) {
  std::vector<std::int32_t> data(count);
  std::iota(data.begin(), data.end(), 1000 * rank);
  return data;
}

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

TEST_CASE("backend: messages arrive whole, in any order of posting", "[backend]") {
  on_every_backend([](Rank& self) {
    const int right = (self.rank + 1) % self.size, left = (self.rank + self.size - 1) % self.size;
    if (self.size == 1) return;
    std::vector<std::vector<std::int32_t>> out, in;
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < std::size(kCounts); ++i) {
      out.push_back(input_of(self.rank, kCounts[i]));
      tickets.push_back(self.channel.post_send(right, i, out.back()));
    }
    for (std::size_t i = std::size(kCounts); i-- > 0;) {
      in.emplace_back(kCounts[i], -1);
      tickets.push_back(self.channel.post_recv(left, i, in.back()));
    }
    WaitContext wait(Deadline::after(20s));
    for (const Ticket ticket : tickets) self.channel.wait(ticket, wait);
    for (const auto& data : in) expect(data == input_of(left, data.size()), "content");
  });
}

TEST_CASE("backend: reductions give every rank the sum and leave the inputs alone", "[backend]") {
  on_every_backend([](Rank& self) {
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
  on_every_backend([](Rank& self) {
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
  on_every_backend([](Rank& self) {
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
  on_every_backend([&](Rank& self) {
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
  on_every_backend([](Rank& self) {
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
    // Whoever gives up first closes its connections, which the others may see before their own deadline.
    expect(first == ErrorCode::timeout || first == ErrorCode::peer_lost, std::string(to_string(first)));
    expect(code_of(10s) == ErrorCode::aborted, "a broken channel refuses calls");
  });
}

TEST_CASE("backend: abort ends the waits of the peers too", "[backend]") {
  on_every_backend([](Rank& self) {
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
