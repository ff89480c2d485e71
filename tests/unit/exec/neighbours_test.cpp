// V-forms by leaders of nodes: what a rank decides before it knows its neighbours' counts, how it learns them, and the
// plan that follows. The ranks are threads, on nodes that are made up.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/channel.hpp>
#include <col/store.hpp>

#include "exec/executor.hpp"
#include "group/call/dispatch.hpp"
#include "support/catch.hpp"
#include "support/channel_ranks.hpp"
#include "support/memory_channel.hpp"

namespace col::test {
namespace {

using Numbers = std::vector<std::int64_t>;

// What each rank sends to each: counts[from][to].
using Counts = std::vector<std::vector<std::size_t>>;

struct Call {
  Collective collective;
  int root = 0;
  Counts counts = {};
};

// Element i of what a rank has for another.
std::int64_t element(std::size_t from, std::size_t to, std::size_t i) {
  return static_cast<std::int64_t>((from * 1000 + to) * 100'000 + i);
}

// Blocks of nothing, short ones and long ones.
Call random_call(Collective collective, std::size_t size, std::mt19937& random) {
  Call call{.collective = collective, .root = static_cast<int>(random() % size), .counts = Counts(size)};
  const auto root = static_cast<std::size_t>(call.root);
  for (std::size_t from = 0; from < size; ++from) {
    for (std::size_t to = 0; to < size; ++to) {
      const bool takes_part =
          collective == Collective::alltoallv || (collective == Collective::gatherv ? to : from) == root;
      call.counts[from].push_back(!takes_part || random() % 4 == 0 ? 0 : random() % 100);
    }
  }
  return call;
}

class Rank {
 public:
  Rank(int rank, const std::vector<int>& nodes, Channel& channel)
      : me_(static_cast<std::size_t>(rank)),
        size_(nodes.size()),
        channel_(channel),
        dispatcher_({.group = "g", .rank = rank, .size = static_cast<int>(nodes.size())}, nodes, "late", {}, false,
                    settings_) {}

  void run(const Call& call, std::uint64_t number) {
    const bool is_root = static_cast<std::size_t>(call.root) == me_;
    const bool gathers = call.collective == Collective::gatherv, scatters = call.collective == Collective::scatterv;
    Numbers in, want;
    std::vector<std::size_t> in_counts, out_counts;
    for (std::size_t peer = 0; peer < size_; ++peer) {
      const std::size_t sent = call.counts[me_][peer], got = call.counts[peer][me_];
      for (std::size_t i = 0; i < sent; ++i) in.push_back(element(me_, peer, i));
      for (std::size_t i = 0; i < got; ++i) want.push_back(element(peer, me_, i));
      if (!gathers && (is_root || !scatters)) in_counts.push_back(sent);
      if (!scatters && (is_root || !gathers)) out_counts.push_back(got);
    }
    Numbers out(want.size(), -1);
    const Request request{.collective = call.collective,
                          .in = in,
                          .out = out,
                          .in_counts = in_counts,
                          .out_counts = out_counts,
                          .root = call.root};
    // 40 elements; by the table, more.
    const std::string asked = number % 2 == 0 ? "two_level_leaders:segment=320" : "";
    const auto decision = dispatcher_.decide(request, {.algorithm = asked});
    expect(decision->exchange != nullptr, fmt::format("{} by {}", to_string(call.collective), decision->algorithm));
    std::vector<std::size_t> counts(decision->exchange->received);
    finish(decision->plan, {.input = decision->exchange->sent.data(), .output = counts.data(), .dtype = DType::uint64},
           number);
    finish(decision->exchange->plan_of(counts),
           {.input = in.data(), .output = out.data(), .dtype = DType::int64, .ranks = static_cast<int>(size_)}, number);
    expect(out == want, fmt::format("{} on rank {}, root {}", to_string(call.collective), me_, call.root));
  }

 private:
  void finish(std::shared_ptr<const Plan> plan, const exec::Operands& operands, std::uint64_t number) {
    executor_.start(channel_, {.plan = std::move(plan), .operands = operands, .slot = number << 32});
    WaitContext wait = wait_for();
    while (!executor_.progress()) executor_.wait(wait);
  }

  std::size_t me_, size_;
  Channel& channel_;
  group::CallSettings settings_;
  group::Dispatcher dispatcher_;
  exec::Executor executor_;
};

}  // namespace

TEST_CASE("neighbours: v-forms over nodes whose ranks tell their leader their counts", "[exec]") {
  register_memory_backend({.name = "late", .longest_delay = std::chrono::microseconds(200), .seed = 20261126});
  const std::vector<std::vector<int>> layouts = {
      {0, 0, 1, 1}, {0, 1, 0, 1, 0, 1}, {0, 1, 1, 1, 2}, {3, 1, 2, 3, 1, 3, 3}};
  for (const std::vector<int>& nodes : layouts) {
    INFO("nodes of the ranks: " << fmt::format("{}", fmt::join(nodes, " ")));
    std::mt19937 random(static_cast<unsigned>(nodes.size()));
    std::vector<Call> calls;
    for (int i = 0; i < 10; ++i) {
      for (const Collective collective : {Collective::gatherv, Collective::scatterv, Collective::alltoallv})
        calls.push_back(random_call(collective, nodes.size(), random));
    }
    const auto store = make_memory_store();
    require_well(run_each(static_cast<int>(nodes.size()), [&](int rank) {
      std::vector<PeerInfo> peers;
      for (int peer = 0; peer < static_cast<int>(nodes.size()); ++peer)
        peers.push_back({.rank = peer, .global_rank = peer, .hostname = "h", .boot_id = "b", .network_namespace = "n"});
      WaitContext wait = wait_for();
      const auto channel = find_backend("late")->connect({.group = "g",
                                                          .rank = rank,
                                                          .size = static_cast<int>(nodes.size()),
                                                          .store = store,
                                                          .peers = peers,
                                                          .same_host = true,
                                                          .token = kToken,
                                                          .socket_ifname = {}},
                                                         wait);
      Rank self(rank, nodes, *channel);
      for (std::size_t i = 0; i < calls.size(); ++i) self.run(calls[i], i + 1);
      store->set(fmt::format("done/{}", rank), "");
      for (std::size_t peer = 0; peer < nodes.size(); ++peer)
        store->wait_for(fmt::format("done/{}", peer), std::chrono::seconds(30));
    }));
  }
}

}  // namespace col::test
