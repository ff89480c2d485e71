// The simulator's ports against the obvious: one list of all messages that wait, searched from its beginning each time.
#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <col/plan.hpp>

#include "support/catch.hpp"

namespace col {
namespace {

struct Sent {
  int from, to;
  std::size_t elements;
};
using Traffic = std::vector<std::vector<Sent>>;  // the messages of each; all ranks list them in this order

// Times are whole numbers: equal ones are exactly equal.
CostModel whole_seconds() {
  CostModel model;
  model.intra = {.alpha = 1, .beta = 0.25};
  model.inter = {.alpha = 3, .beta = 0.5};
  return model;
}

class Obvious {
 public:
  Obvious(const Traffic& rounds, std::vector<int> nodes, CostModel model)
      : rounds_(rounds), nodes_(std::move(nodes)), model_(std::move(model)), ranks_(nodes_.size()) {}

  std::vector<double> run() {
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) begin(r);
    serve();
    while (!events_.empty()) {
      const auto now = events_.begin();
      now_ = now->first;
      const std::vector<std::size_t> arrived = std::move(now->second);
      events_.erase(now);
      for (const std::size_t id : arrived) arrive(id);
      serve();
    }
    std::vector<double> ends;
    for (const Rank& rank : ranks_) ends.push_back(rank.end);
    return ends;
  }

 private:
  struct Rank {
    std::size_t next = 0;
    int in_flight = 0;
    double end = -1;
  };
  struct Message {
    Sent sent;
    std::array<std::size_t, 2> slots = {};
    std::array<int, 2> ports = {};
    double seconds = 0;
  };
  using Pair = std::pair<int, int>;

  void begin(int r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    for (; rank.in_flight == 0 && rank.next < rounds_.size(); ++rank.next) {
      for (const Sent& sent : rounds_[rank.next]) {
        for (const int side : {0, 1}) {
          if ((side == 0 ? sent.from : sent.to) == r) post(sent, side, static_cast<std::size_t>(rank.in_flight++));
        }
      }
    }
    if (rank.in_flight == 0) rank.end = now_;
  }

  void post(const Sent& sent, int side, std::size_t slot) {
    const auto me = static_cast<std::size_t>(side);
    std::deque<std::size_t>& others = posted_[me ^ 1][{sent.from, sent.to}];
    if (others.empty()) {
      posted_[me][{sent.from, sent.to}].push_back(messages_.size());
      messages_.push_back({.sent = sent});
      messages_.back().slots[me] = slot;
      return;
    }
    const std::size_t id = others.front();
    others.pop_front();
    Message& message = messages_[id];
    message.slots[me] = slot;
    const std::array<int, 2> nodes = {nodes_[static_cast<std::size_t>(sent.from)],
                                      nodes_[static_cast<std::size_t>(sent.to)]};
    const bool inter = nodes[0] != nodes[1];
    const CostModel::Link& link = inter ? model_.inter : model_.intra;
    message.seconds = link.alpha + 4 * link.beta * static_cast<double>(sent.elements);
    message.ports = {sent.from, sent.to};
    if (inter && model_.nic_shared) message.ports = {-1 - nodes[0], -1 - nodes[1]};
    ready_.push_back(id);
  }

  void arrive(std::size_t id) {
    const Message& message = messages_[id];
    for (const std::size_t side : {0U, 1U}) {
      busy_[side][message.ports[side]] = false;
      freed_[side].push_back(message.ports[side]);
    }
    for (const int r : {message.sent.from, message.sent.to}) {
      if (--ranks_[static_cast<std::size_t>(r)].in_flight == 0) begin(r);
    }
  }

  bool take(std::size_t id) {
    const Message& message = messages_[id];
    if (busy_[0][message.ports[0]] || busy_[1][message.ports[1]]) return false;
    busy_[0][message.ports[0]] = busy_[1][message.ports[1]] = true;
    events_[now_ + message.seconds].push_back(id);
    return true;
  }

  void serve() {
    for (const std::size_t side : {0U, 1U}) {
      for (const int port : std::exchange(freed_[side], {})) {
        const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                        [&](std::size_t id) { return messages_[id].ports[side] == port && take(id); });
        if (found != waiting_.end()) waiting_.erase(found);
      }
    }
    std::sort(ready_.begin(), ready_.end(), [&](std::size_t a, std::size_t b) {
      const auto turn = [&](std::size_t id) { return std::pair(messages_[id].slots, messages_[id].sent.from); };
      return turn(a) < turn(b);
    });
    for (const std::size_t id : std::exchange(ready_, {})) {
      if (!take(id)) waiting_.push_back(id);
    }
  }

  const Traffic& rounds_;
  std::vector<int> nodes_;
  CostModel model_;
  std::vector<Rank> ranks_;
  std::vector<Message> messages_;
  std::array<std::map<Pair, std::deque<std::size_t>>, 2> posted_;
  std::array<std::map<int, bool>, 2> busy_;
  std::array<std::vector<int>, 2> freed_;
  std::vector<std::size_t> ready_, waiting_;
  std::map<double, std::vector<std::size_t>> events_;
  double now_ = 0;
};

std::vector<double> simulated(const Traffic& rounds, const std::vector<int>& nodes, const CostModel& model) {
  const PlanProblem problem(
      {.collective = Collective::broadcast, .size = static_cast<int>(nodes.size()), .count = 1, .node_of_rank = nodes});
  const auto plan_of = [&](int rank) {
    return Plan{.rounds = rounds.size(), .generate = [&rounds, rank](std::size_t i, Round& round) {
                  for (const Sent& sent : rounds[i]) {
                    const Slice slice{Buffer::output, 0, sent.elements};
                    if (sent.from == rank) round.add({.kind = Step::Kind::send, .peer = sent.to, .left = slice});
                    if (sent.to == rank) round.add({.kind = Step::Kind::recv, .peer = sent.from, .to = slice});
                  }
                }};
  };
  return simulate(problem, plan_of, model).rank_seconds;
}

TEST_CASE("simulate: ports serve as one list of all that wait would say", "[plan][simulate]") {
  const unsigned first_seed = std::random_device()() % 1'000'000;
  for (unsigned seed = first_seed; seed < first_seed + 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    // More than 64 ports, and fewer; few nodes, and many.
    const int ranks = draw(0, 2) == 0 ? draw(65, 200) : draw(2, 40);
    std::vector<int> nodes(static_cast<std::size_t>(ranks));
    const int ranks_per_node = draw(1, 9);
    for (int r = 0; r < ranks; ++r) nodes[static_cast<std::size_t>(r)] = r / ranks_per_node;
    if (draw(0, 2) == 0) std::shuffle(nodes.begin(), nodes.end(), random);
    CostModel model = whole_seconds();
    model.nic_shared = draw(0, 1) == 0;
    Traffic rounds(static_cast<std::size_t>(draw(1, 3)));
    for (std::vector<Sent>& round : rounds) {
      // Any to any; all to all, in the order of most plans; or all to a few, so that many wait for the same ports.
      const int shape = draw(0, 2);
      const int messages = ranks * draw(1, 12);
      for (int i = 0; i < messages; ++i) {
        const int from = shape == 1 ? i % ranks : draw(0, ranks - 1);
        int to = shape == 1 ? (from + 1 + i / ranks) % ranks : draw(0, shape == 0 ? ranks - 1 : std::min(2, ranks - 1));
        if (to == from) to = (to + 1) % ranks;
        round.push_back({from, to, static_cast<std::size_t>(draw(0, 3) == 0 ? draw(1, 50) : 20)});
      }
    }
    REQUIRE(simulated(rounds, nodes, model) == Obvious(rounds, nodes, model).run());
  }
}

}  // namespace
}  // namespace col
