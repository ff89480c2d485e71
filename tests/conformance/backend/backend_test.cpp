// What every backend must do, run on each one that is registered, through the public interface: collectives, the end of
// a channel, the registry. Messages: messages_test.cpp.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <col/channel.hpp>

#include "conformance/backend/backend_ranks.hpp"
#include "support/catch.hpp"
#include "support/collectives.hpp"
#include "support/fork.hpp"
#include "support/outcomes.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

// Every entry of the backend's own for that call, against the reference.
void check_entries(BackendRank& self, const tools::ReferenceCall& call) {
  if (!self.has(call.collective)) return;
  const auto value = [](int rank, std::size_t i) { return 1000 * rank + static_cast<std::int32_t>(i); };
  const auto sides = sides_of(call, self.rank, -1, value);
  auto in = sides.in, out = sides.before;
  self.each_entry(
      {.collective = call.collective,
       .in = in,
       .out = out,
       .in_counts = sides.lengths.in_counts,
       .out_counts = sides.lengths.out_counts,
       .root = call.root},
      [&] { out = sides.before; },
      [&] {
        expect_equal(out, sides.want, std::string(to_string(call.collective)));
        expect_equal(in, sides.in, "inputs are only read");
      });
}

}  // namespace

TEST_CASE("backend: collectives give what the reference says, and leave the inputs alone", "[backend]") {
  on_every_backend([](BackendRank& self) {
    for (const std::size_t count : {0, 1, 3, 4, 1021, 60'000}) {
      for (const Collective collective : all_collectives()) {
        if (row_of(collective).has_counts()) continue;
        for (const int root : {0, self.size - 1})
          check_entries(self, {.collective = collective, .size = self.size, .root = root, .count = count});
      }
    }
  });
}

TEST_CASE("backend: counts may differ by rank, and be zero", "[backend]") {
  on_every_backend([](BackendRank& self) {
    for (const Collective collective : all_collectives()) {
      if (row_of(collective).has_counts()) check_entries(self, reference_call(collective, self.size, 0, 50));
    }
  });
}

TEST_CASE("backend: nobody leaves a barrier before all have entered", "[backend]") {
  // Shared by the forked ranks, each of which counts itself in before it enters.
  const SharedByForks<std::atomic<int>> entered;
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
}

TEST_CASE("backend: a wait ends at its deadline, then everything says what the first cause was", "[backend]") {
  between_ranks([](BackendRank& self) {
    std::vector<std::int32_t> data(1);
    const auto code_of = [&](Duration timeout) {
      const auto receive = [&] { self.wait(self.channel.post_recv((self.rank + 1) % self.size, 4711, data), timeout); };
      return error_of(receive).code();
    };
    const ErrorCode first = code_of(200ms);
    // Whoever gives up first ends the channel, which the others may see before their own deadline.
    expect(first == ErrorCode::timeout || first == ErrorCode::peer_lost || first == ErrorCode::aborted,
           std::string(to_string(first)));
    expect(code_of(10s) == ErrorCode::aborted, "a broken channel refuses calls");
  });
}

TEST_CASE("backend: abort ends the waits of the peers too", "[backend]") {
  between_ranks([](BackendRank& self) {
    std::vector<std::int32_t> data(1);
    const auto start = std::chrono::steady_clock::now();
    if (self.rank == 0) {
      self.channel.abort(Error(ErrorCode::aborted, "enough"));
      return;
    }
    const Error error = error_of([&] { self.wait(self.channel.post_recv(0, 1, data)); });
    expect(error.code() == ErrorCode::peer_lost || error.code() == ErrorCode::aborted, error.what());
    expect(std::chrono::steady_clock::now() - start < kPrompt, "promptly");
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
  expect_error(ErrorCode::already_initialized, "'nothing'", [] { register_backend(std::make_unique<Nothing>()); });
}
