#include "plan/node_clocks.hpp"

#include <numeric>

#include "plan/folding.hpp"
#include "plan/support.hpp"

namespace col::plan {
namespace {

int at(std::span<const int> ranks, int i) {
  return ranks[static_cast<std::size_t>(i)];
}

int count_of(std::span<const int> ranks) {
  return static_cast<int>(ranks.size());
}

}  // namespace

NodeClocks::NodeClocks(const PlanProblem& problem, const PlanParameters& parameters, const CostModel& model,
                       double bytes)
    : model_(model),
      parameters_(parameters),
      bytes_(bytes),
      root_(problem.spec().root),
      nodes_(problem.request(0)),
      all_(static_cast<std::size_t>(problem.size())),
      clocks_(all_.size()),
      senders_(static_cast<std::size_t>(nodes_.count()), -1),
      receivers_(senders_) {
  std::iota(all_.begin(), all_.end(), 0);
  for (int node = 0; node < nodes_.count(); ++node) leaders_.push_back(nodes_.rank(node, 0));
}

std::vector<double> NodeClocks::node_bytes() const {
  std::vector<double> bytes;
  for (int node = 0; node < nodes_.count(); ++node) bytes.push_back(nodes_.size(node) * block());
  return bytes;
}

// Whoever is at the slowest link has each of its steps there, and nobody has longer ones.
CostTerms NodeClocks::terms_of_ring(double message_bytes) {
  double slowest = 0;
  for (int rank = 0; rank < size(); ++rank)
    slowest = std::max(slowest, message(rank, shifted(rank, 1, size()), message_bytes));
  const bool is_inter = slowest == terms(model_.inter).message(message_bytes);
  return is_inter ? terms_between_nodes() : terms_in_node();
}

// ---- Steps ----------------------------------------------------------------------------------------------------------

double NodeClocks::message(int from, int to, double bytes) {
  if (nodes_.node_of(from) == nodes_.node_of(to)) return terms_in_node().message(bytes);
  if (model_.nic_shared) {
    claim(senders_, from);
    claim(receivers_, to);
  }
  return terms_between_nodes().message(bytes);
}

void NodeClocks::claim(std::vector<int>& users, int rank) {
  int& user = users[static_cast<std::size_t>(nodes_.node_of(rank))];
  if (user >= 0 && user != rank) give_up();
  user = rank;
}

void NodeClocks::send(int from, int to, double bytes) {
  const double end = std::max(clock(from), clock(to)) + message(from, to, bytes);
  clock(from) = clock(to) = end;
}

void NodeClocks::exchange(int a, int b, double bytes_of_a, double bytes_of_b, bool adds) {
  const double begin = std::max(clock(a), clock(b));
  const double to_b = begin + message(a, b, bytes_of_a), to_a = begin + message(b, a, bytes_of_b);
  const double gamma = adds ? model_.gamma : 0;
  clock(a) = std::max(to_b, to_a + bytes_of_b * gamma);
  clock(b) = std::max(to_a, to_b + bytes_of_a * gamma);
}

void NodeClocks::shift(std::span<const int> ranks, int by, const Bytes& bytes_of, const Bytes& added_by) {
  std::vector<double> ends(ranks.size(), 0);
  for (int i = 0; i < count_of(ranks); ++i) {
    const int j = shifted(i, by, count_of(ranks));
    const double end =
        std::max(clock(at(ranks, i)), clock(at(ranks, j))) + message(at(ranks, i), at(ranks, j), bytes_of(i));
    double& sender = ends[static_cast<std::size_t>(i)];
    double& receiver = ends[static_cast<std::size_t>(j)];
    sender = std::max(sender, end);
    receiver = std::max(receiver, end + added_by(j) * model_.gamma);
  }
  for (int i = 0; i < count_of(ranks); ++i) clock(at(ranks, i)) = ends[static_cast<std::size_t>(i)];
}

// ---- Algorithms -----------------------------------------------------------------------------------------------------

void NodeClocks::dissemination(std::span<const int> ranks) {
  for (int distance = 1; distance < count_of(ranks); distance *= 2) shift(ranks, distance, [](int) { return 0.0; });
}

void NodeClocks::tree_up(std::span<const int> ranks) {
  for (int weight = 1; weight < count_of(ranks); weight *= 2) {
    for (int i = 0; i + weight < count_of(ranks); i += 2 * weight) send(at(ranks, i + weight), at(ranks, i), 0);
  }
}

void NodeClocks::tree_down(std::span<const int> ranks) {
  for (int weight = 1 << ceil_log2(count_of(ranks)); weight > 0; weight /= 2) {
    for (int i = 0; i + weight < count_of(ranks); i += 2 * weight) send(at(ranks, i), at(ranks, i + weight), 0);
  }
}

void NodeClocks::mst_up(std::span<const int> ranks, int root) {
  mst(ranks, 0, count_of(ranks) - 1, root, true);
}

void NodeClocks::mst_down(std::span<const int> ranks, int root) {
  mst(ranks, 0, count_of(ranks) - 1, root, false);
}

// As trees.hpp cuts the range [first, last].
void NodeClocks::mst(std::span<const int> ranks, int first, int last, int root, bool up) {
  if (first >= last) return;
  const int middle = first + (last - first) / 2;
  const bool root_is_left = root <= middle;
  const int other = root_is_left ? last : first;
  if (!up) send(at(ranks, root), at(ranks, other), bytes_);
  mst(ranks, first, middle, root_is_left ? root : other, up);
  mst(ranks, middle + 1, last, root_is_left ? other : root, up);
  if (!up) return;
  send(at(ranks, other), at(ranks, root), bytes_);
  add(at(ranks, root), bytes_);
}

void NodeClocks::doubling(std::span<const int> ranks, bool half_duplex) {
  const Folding folding(count_of(ranks));
  const auto acting = [&](int group) { return at(ranks, folding.first_rank(group)); };
  for (int i = 0; i < folding.size(); ++i) {
    if (!folding.has_extra(i)) continue;
    send(at(ranks, i + 1), at(ranks, i), bytes_);
    add(at(ranks, i), bytes_);
  }
  for (int width = 1; width < folding.groups(); width *= 2) {
    for (int group = 0; group < folding.groups(); ++group) {
      if ((group & width) != 0) continue;
      const int lower = acting(group), upper = acting(group + width);
      if (half_duplex) {
        send(lower, upper, bytes_);
        // While its own message travels, the upper one adds.
        const double added = clock(upper) + bytes_ * model_.gamma;
        send(upper, lower, bytes_);
        add(lower, bytes_);
        clock(upper) = std::max(clock(upper), added);
      } else {
        exchange(lower, upper, bytes_, bytes_, true);
      }
    }
  }
  for (int i = 0; i < folding.size(); ++i) {
    if (folding.has_extra(i)) send(at(ranks, i), at(ranks, i + 1), bytes_);
  }
}

void NodeClocks::bruck(std::span<const int> ranks, const std::vector<double>& blocks) {
  const int size = count_of(ranks);
  // Blocks in two rounds: those from number i on are never more than one.
  std::vector<double> before = {0};
  for (int i = 0; i < 2 * size; ++i) before.push_back(before.back() + blocks[static_cast<std::size_t>(i % size)]);
  for (int held = 1; held < size; held *= 2) {
    const int moved = std::min(held, size - held);
    shift(ranks, -held,
          [&](int i) { return before[static_cast<std::size_t>(i + moved)] - before[static_cast<std::size_t>(i)]; });
  }
}

void NodeClocks::halving(std::span<const int> ranks, const std::vector<double>& blocks) {
  const Folding folding(count_of(ranks));
  const auto acting = [&](int group) { return at(ranks, folding.first_rank(group)); };
  for (int i = 0; i < folding.size(); ++i) {
    if (!folding.has_extra(i)) continue;
    send(at(ranks, i + 1), at(ranks, i), bytes_);
    add(at(ranks, i), bytes_);
  }
  for (int width = 1; width < folding.groups(); width *= 2) {
    // What is kept: the blocks of the groups whose numbers end in the same bits.
    const auto classes = static_cast<std::size_t>(2 * width);
    std::vector<double> kept(classes, 0);
    for (int i = 0; i < folding.size(); ++i)
      kept[static_cast<std::size_t>(folding.group_of(i)) % classes] += blocks[static_cast<std::size_t>(i)];
    const auto kept_by = [&](int group) { return kept[static_cast<std::size_t>(group) % classes]; };
    for (int group = 0; group < folding.groups(); ++group) {
      const int partner = group + width;
      if ((group & width) != 0) continue;
      exchange(acting(group), acting(partner), kept_by(partner), kept_by(group), true);
    }
  }
  for (int i = 0; i < folding.size(); ++i) {
    if (folding.has_extra(i)) send(at(ranks, i), at(ranks, i + 1), blocks[static_cast<std::size_t>(i + 1)]);
  }
}

}  // namespace col::plan
