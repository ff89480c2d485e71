// Connections that are made when two ranks first talk: how many there are, who makes them, what a group costs before
// anybody talks, and that the loss of a rank is known to those that have no connection to it.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "backend/gloo/kinship.hpp"
#include "core/log.hpp"
#include "support/catch.hpp"
#include "support/counting_store.hpp"
#include "support/soon.hpp"
#include "support/temp_dir.hpp"
#include "unit/gloo/mesh.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
using gloo_backend::Kinship;

int kin_of(int rank, int size) {
  return static_cast<int>(Kinship(size).children_of(rank).size()) + (rank > 0 ? 1 : 0);
}

void let_all_open_many() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// From the last rank's entry to the last one's return.
class Forming {
 public:
  using Clock = std::chrono::steady_clock;
  void enter() { later(entered_); }
  void leave() { later(left_); }
  double seconds() const { return std::chrono::duration<double>(left_ - entered_).count(); }

 private:
  void later(Clock::time_point& time) {
    const std::lock_guard lock(mutex_);
    time = std::max(time, Clock::now());
  }
  std::mutex mutex_;
  Clock::time_point entered_{}, left_{};
};

}  // namespace

TEST_CASE("gloo kinship: every rank but the first has a parent, whose child it is; who is left stays connected",
          "[gloo]") {
  for (const int size : {1, 2, 5, 6, 21, 22, 128}) {
    // All on one host, in blocks, and dealt in turn.
    for (const int ranks_on_host : {size, 1, 3, 16, -5}) {
      std::vector<int> hosts;
      for (int rank = 0; rank < size; ++rank)
        hosts.push_back(ranks_on_host > 0 ? rank / ranks_on_host : rank % -ranks_on_host);
      const Kinship kin(hosts);
      for (unsigned gone_bits = 0; gone_bits < 64; ++gone_bits) {
        const auto gone = [gone_bits](int rank) { return rank < 6 && (gone_bits >> rank & 1U) != 0; };
        int roots = 0;
        for (int rank = 0; rank < size; ++rank) {
          if (gone(rank)) continue;
          const int parent = kin.parent_of(rank, gone);
          if (parent < 0) {
            ++roots;
            continue;
          }
          REQUIRE((parent < rank && !gone(parent)));  // so all ways lead to the one root
          // One rank of each host hears those of others, so that the others may be stopped.
          const bool crosses = hosts[static_cast<std::size_t>(parent)] != hosts[static_cast<std::size_t>(rank)];
          const auto& neighbours = kin.ranks_on(kin.host_of(rank));
          const auto first = std::find_if(neighbours.begin(), neighbours.end(), [&](int one) { return !gone(one); });
          if (gone_bits == 0) REQUIRE(crosses == (*first == rank));
          if (gone_bits != 0 || rank == 0) continue;
          REQUIRE(parent == kin.parent_of(rank));
          const auto children = kin.children_of(parent);
          REQUIRE(std::count(children.begin(), children.end(), rank) == 1);
        }
        REQUIRE(roots <= 1);
      }
      std::vector<int> all = kin.subtree_of(0);
      REQUIRE(all.size() == static_cast<std::size_t>(size));
      std::sort(all.begin(), all.end());
      REQUIRE(std::adjacent_find(all.begin(), all.end()) == all.end());
    }
  }
}

TEST_CASE("gloo first talk: a connection is made by the first message, to its rank and to no other", "[gloo]") {
  constexpr int kSize = 12;
  const auto store = make_memory_store();
  require_well(run_ranks(kSize, [&](int rank, GlooChannel& channel) {
    expect(channel.transport().connections() == kin_of(rank, kSize), "those of the tree");
    await_all(*store, "looked", kSize);
    std::int32_t word = rank;
    if (rank == 11) send(channel, 7, 1, ConstTensorView{&word, 1, DType::int32});
    if (rank == 7) recv(channel, 11, 1, TensorView{&word, 1, DType::int32});
    expect(rank != 7 || word == 11, "content");
    await_all(*store, "talked", kSize);
    expect(channel.transport().connections() == kin_of(rank, kSize) + (rank == 7 || rank == 11 ? 1 : 0), "one more");
    await_all(*store, "looked again", kSize);
  }));
}

TEST_CASE("gloo first talk: a small group is connected from the start, and needs no descriptor later", "[gloo]") {
  for (const int size : {2, 3, 6}) {
    const auto store = make_memory_store();
    require_well(run_ranks(size, [&](int, GlooChannel& channel) {
      expect(channel.transport().connections() == size - 1, "to each");
      if (store->add("looked", 1) == size) store->set("all", "yes");
      store->wait_for("all", 20s);
    }));
  }
}

TEST_CASE("gloo first talk: ranks that begin at once end up with one connection each, and nothing is lost",
          "[gloo][rest]") {
  constexpr int kSize = 9, kRounds = 40, kMessages = 5;
  constexpr std::size_t kCounts[] = {0, 1, 100, 100'000};
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t count = kCounts[round % 4];
    const core::log::Capture log(core::log::Level::warn);
    const auto store = make_memory_store();
    const auto endings = run_ranks(kSize, [&](int rank, GlooChannel& channel) {
      std::vector<std::vector<std::int32_t>> sent, got;
      sent.reserve(kSize * kMessages);
      got.reserve(kSize * kMessages);
      std::vector<Ticket> tickets;
      if (store->add("here", 1) == kSize) store->set("go", "yes");
      store->wait_for("go", 20s);
      for (int m = 0; m < kMessages; ++m) {
        for (int peer = 0; peer < kSize; ++peer) {
          if (peer == rank) continue;
          sent.emplace_back(count, rank * 100 + m);
          tickets.push_back(channel.post_send(peer, 3, sent.back()));
          got.emplace_back(count, -1);
          tickets.push_back(channel.post_recv(peer, 3, got.back()));
        }
      }
      for (const Ticket ticket : tickets) wait_for(channel, ticket);
      for (int m = 0, i = 0; m < kMessages; ++m) {
        for (int peer = 0; peer < kSize; ++peer) {
          if (peer == rank) continue;
          const auto& one = got[static_cast<std::size_t>(i++)];
          expect(std::count(one.begin(), one.end(), peer * 100 + m) == static_cast<std::ptrdiff_t>(count), "content");
        }
      }
      expect(channel.transport().connections() == kSize - 1, "one each");
      if (store->add("done", 1) == kSize) store->set("end", "yes");
      store->wait_for("end", 20s);
    });
    INFO("round " << round << "\n" << show(endings) << log.text());
    REQUIRE(all_well(endings));
    REQUIRE(log.text().empty());  // nobody was taken for a stranger
  }
}

TEST_CASE("gloo first talk: a receive from any peer takes messages of peers that connect later, small and large",
          "[gloo]") {
  constexpr int kSize = 7;
  for (const std::size_t count : {std::size_t{3}, std::size_t{50'000}}) {
    const auto store = make_memory_store();
    require_well(run_ranks(kSize, [&](int rank, GlooChannel& channel) {
      std::vector<std::int32_t> data(count, rank);
      if (rank != 6) {
        // One after the other: which of two messages rank 6 takes first is nobody's promise.
        if (rank > 0) store->wait_for(fmt::format("received/{}", rank - 1), kDeadline);
        send(channel, 6, 5, data);
        return;
      }
      std::array<std::vector<std::int32_t>, 6> places;
      std::array<Ticket, 6> tickets;
      for (std::size_t i = 0; i < places.size(); ++i) {
        places[i].resize(count);
        tickets[i] = channel.post_recv(kAnyPeer, 5, places[i]);
      }
      for (std::size_t i = 0; i < places.size(); ++i) {
        const int from = wait_for(channel, tickets[i]);
        expect(from == static_cast<int>(i), fmt::format("receive {} got the message of rank {}", i, from));
        store->set(fmt::format("received/{}", i), "yes");
        expect(std::count(places[i].begin(), places[i].end(), from) == static_cast<std::ptrdiff_t>(count), "content");
      }
    }));
  }
}

TEST_CASE("gloo first talk: of small messages that nobody receives, some are kept, and the others wait", "[gloo]") {
  constexpr int kMany = 100;  // of 10 kB each: more than a receiver keeps
  static constexpr std::ptrdiff_t kKept = gloo_backend::kMostKeptBytes / gloo_backend::kept_bytes(10'000);
  require_well(run_ranks(2, [](int rank, GlooChannel& channel) {
    std::vector<std::vector<std::int32_t>> data(kMany, std::vector<std::int32_t>(2500));
    for (int m = 0; m < kMany; ++m) {
      if (rank == 0) std::fill(data[static_cast<std::size_t>(m)].begin(), data[static_cast<std::size_t>(m)].end(), m);
    }
    for (int round = 0; round < 3; ++round) {
      std::vector<Ticket> tickets;
      if (rank == 0) {
        for (auto& one : data) tickets.push_back(channel.post_send(1, 4, one));
        barrier(channel, 1);
        const auto ended = std::erase_if(tickets, [&](Ticket ticket) { return channel.test(ticket).has_value(); });
        // Of earlier ones, some may not have been said to be taken.
        expect(static_cast<std::ptrdiff_t>(ended) >= kKept / 2 && static_cast<std::ptrdiff_t>(ended) <= kKept,
               fmt::format("{} of {} were kept in round {}", ended, kKept, round));
        barrier(channel, 2);
      } else {
        barrier(channel, 1);
        barrier(channel, 2);
        for (auto& one : data) tickets.push_back(channel.post_recv(0, 4, one));
      }
      for (const Ticket ticket : tickets) wait_for(channel, ticket);
      for (int m = 0; m < kMany; ++m) expect(data[static_cast<std::size_t>(m)][2499] == m, "order and content");
    }
    barrier(channel, 3);
  }));
}

TEST_CASE(
    "gloo first talk: a rank's death is known in a second to ranks that have no connection to it, also when "
    "others have left",
    "[gloo]") {
  // 0 has the children 1 to 4, and 1 has 5 and 6.
  constexpr int kSize = 7, kVictim = 6;
  for (const bool others_leave : {false, true}) {
    const TempDir dir;
    const auto store = make_file_store(dir.path());
    std::vector<RankProcess> ranks;
    for (int rank = 0; rank < kSize; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto own_store = make_file_store(dir.path());
        const auto channel = connect({.rank = rank, .size = kSize, .store = make_prefix_store(own_store, "connect")});
        if (others_leave && rank < 2) return;
        std::int32_t word = 0;
        const Ticket ticket = channel->post_recv(kAnyPeer, 1, TensorView{&word, 1, DType::int32});
        if (others_leave) {
          // Until they have found other ways to each other: 2, who had no children, becomes the parent of all.
          bool have_met = false;
          const Ending ending = ending_of([&] {
            have_met = soon([&] {
              expect(!channel->test(ticket), "nobody sends");
              if (rank == 2 && channel->transport().connections() == kSize - 3) own_store->set("have met", "yes");
              return own_store->get("have met").has_value();
            });
          });
          expect(!ending.code, "those who have left keep nobody from waiting: " + ending.text);
          expect(have_met, "a new parent");
        }
        own_store->set(fmt::format("waits/{}", rank), "yes");
        const Ending ending = ending_of([&] { wait_for(*channel, ticket); });
        expect(ending.code == ErrorCode::peer_lost, ending.text);
        own_store->set(fmt::format("failed/{}", rank), std::to_string(ending.rank));
        own_store->wait_for("enough", 20s);
      });
    }
    const int first = others_leave ? 2 : 0;
    for (int rank = first; rank < kSize; ++rank) store->wait_for(fmt::format("waits/{}", rank), 20s);
    ranks[kVictim].kill();
    bool is_named = false;
    for (int rank = first; rank < kVictim; ++rank)
      is_named |= store->wait_for(fmt::format("failed/{}", rank), kPrompt) == std::to_string(kVictim);
    CHECK(is_named);
    store->set("enough", "yes");
    for (int rank = 0; rank < kVictim; ++rank) CHECK(ranks[static_cast<std::size_t>(rank)].wait().text == "");
  }
}

TEST_CASE("gloo first talk: a group takes bytes of the store, and rounds, in proportion to its ranks", "[gloo]") {
  let_all_open_many();
  constexpr int kLeast = 8, kMost = 128;
  double least = 0, most = 0;
  for (int size = kLeast; size <= kMost; size *= 2) {
    const auto store = std::make_shared<CountingStore>(make_memory_store());
    Forming forming;
    require_well(run_each(size, [&](int rank) {
      forming.enter();
      const auto channel = connect({.rank = rank, .size = size, .store = store}, 60s);
      forming.leave();
      barrier(*channel, 1, 60s);
    }));
    const std::size_t bytes = store->bytes() - store->got_bytes();  // without looks whether another one has failed
    std::printf("gloo: %3d ranks: %6zu bytes and %4zu rounds of the store, formed in %.3f s\n", size, bytes,
                store->rounds() - store->gets(), forming.seconds());
    // Three times as much as when all come at once: of those that wait for long, all publish their addresses.
    CHECK(bytes <= 256 * static_cast<std::size_t>(size));
    CHECK(store->num_keys({}) == 0);
    (size == kLeast ? least : most) = static_cast<double>(bytes);
  }
  const double exponent = std::log(most / least) / std::log(double{kMost} / kLeast);
  std::printf("gloo: the bytes grow with the number of ranks to the power of %.2f\n", exponent);
}

TEST_CASE("gloo first talk: 64 processes that may open 256 files each form, and all talk to all", "[gloo]") {
  constexpr int kSize = 64;
  const TempDir dir;
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < kSize; ++rank) {
    ranks.emplace_back([&, rank] {
      const rlimit limits{256, 256};
      setrlimit(RLIMIT_NOFILE, &limits);
      const auto channel = connect({.rank = rank, .size = kSize, .store = make_file_store(dir.path())}, 60s);
      std::vector<std::int32_t> in(kSize, rank), out(kSize, -1);
      Request request = request_for(Collective::alltoall, 1, 1);
      request.in = in;
      request.out = out;
      run_native(*channel, request);
      for (int peer = 0; peer < kSize; ++peer) expect(out[static_cast<std::size_t>(peer)] == peer, "content");
      expect(channel->transport().connections() == kSize - 1, "a connection to each");
      barrier(*channel, 2, 60s);
    });
  }
  for (int rank = 0; rank < kSize; ++rank) {
    INFO("rank " << rank);
    CHECK(ranks[static_cast<std::size_t>(rank)].wait(100s).text == "");
  }
}
