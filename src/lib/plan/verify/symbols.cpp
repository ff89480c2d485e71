#include "plan/verify/symbols.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include <fmt/format.h>

namespace col::plan::symbolic {
namespace {

constexpr std::uint32_t kMany = std::numeric_limits<std::uint32_t>::max();

std::uint32_t saturating_sum(std::uint32_t a, std::uint32_t b) {
  return b > kMany - a ? kMany : a + b;
}

// splitmix64: a bijection that scatters.
std::uint64_t scatter(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t hash_of(Node left, Node right) {
  return scatter((static_cast<std::uint64_t>(left) << 32) | right);
}

// Numbers whose count `chosen` accepts, as "0..2, 5"; cut short after some.
template <class Chosen>
std::string list_of(const std::vector<std::uint32_t>& counts, Chosen chosen) {
  constexpr int kMostRanges = 8;
  std::string text;
  int ranges = 0;
  for (std::size_t first = 0; first < counts.size();) {
    if (!chosen(counts[first])) {
      ++first;
      continue;
    }
    std::size_t last = first;
    while (last + 1 < counts.size() && chosen(counts[last + 1])) ++last;
    if (++ranges > kMostRanges) return text + ", …";
    if (!text.empty()) text += ", ";
    text += last == first ? fmt::format("{}", first) : fmt::format("{}..{}", first, last);
    first = last + 1;
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Symbols::Symbols(int contributions, bool of_ranks)
    : leaves_(contributions), of_ranks_(of_ranks), terms_(1), slots_(1024, kUnset) {
  Fingerprint sum;
  prefix_.push_back(sum);
  for (int leaf = 0; leaf < leaves_; ++leaf) {
    const auto seed = static_cast<std::uint64_t>(leaf) * 2;
    const Fingerprint own{scatter(seed), scatter(seed + 1)};
    sum = {sum.low + own.low, sum.high + own.high};
    prefix_.push_back(sum);
    terms_.push_back({.members = own,
                      .contributions = 1,
                      .first = leaf,
                      .last = leaf + 1,
                      .kind = Kind::leaf,
                      .is_left_fold = true,
                      .is_tree = true});
  }
}

Node Symbols::reduce(Node left, Node right) {
  const Term& a = terms_[left];
  const Term& b = terms_[right];
  Term term{.members = {a.members.low + b.members.low, a.members.high + b.members.high},
            .contributions = saturating_sum(a.contributions, b.contributions),
            .left = left,
            .right = right,
            .kind = Kind::reduce};
  if (a.first != a.last && b.first != b.last && a.last == b.first) {
    term.first = a.first;
    term.last = b.last;
    term.is_left_fold = a.is_left_fold && b.kind == Kind::leaf;
    // A tree over n leaves is cut after the largest power of two below n, whatever comes before and after them.
    const auto leaves = static_cast<unsigned>(b.last - a.first);
    const auto left_leaves = static_cast<unsigned>(a.last - a.first);
    term.is_tree = a.is_tree && b.is_tree && left_leaves == std::bit_floor(leaves - 1);
  }
  return intern(term);
}

Node Symbols::finish(Node value) {
  Term term = terms_[value];
  term.left = value;
  term.right = kUnset;
  term.kind = Kind::finish;
  return intern(term);
}

bool Symbols::holds_once(Node node, int first, int last) const noexcept {
  const Term& term = terms_[node];
  const Fingerprint& from = prefix_[static_cast<std::size_t>(first)];
  const Fingerprint& to = prefix_[static_cast<std::size_t>(last)];
  return term.contributions == static_cast<std::uint32_t>(last - first) &&
         term.members == Fingerprint{to.low - from.low, to.high - from.high};
}

FoldOrder Symbols::order(Node node) const noexcept {
  const Term& term = terms_[node];
  if (term.first == term.last) return FoldOrder::any;
  return term.is_left_fold ? FoldOrder::rank_order : FoldOrder::contiguous;
}

Node Symbols::intern(const Term& term) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_of(term.left, term.right) & mask;
  for (; slots_[slot] != kUnset; slot = (slot + 1) & mask) {
    const Term& other = terms_[slots_[slot]];
    if (other.left == term.left && other.right == term.right) return slots_[slot];
  }
  const auto node = static_cast<Node>(terms_.size());
  terms_.push_back(term);
  slots_[slot] = node;
  if (terms_.size() * 2 > slots_.size()) grow();
  return node;
}

void Symbols::grow() {
  slots_.assign(slots_.size() * 4, kUnset);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t node = static_cast<std::size_t>(leaves_) + 1; node < terms_.size(); ++node) {
    std::size_t slot = hash_of(terms_[node].left, terms_[node].right) & mask;
    while (slots_[slot] != kUnset) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<Node>(node);
  }
}

std::vector<std::uint32_t> Symbols::contributions(Node node) const {
  // An operand is always older than what is made of it: from the youngest down, every node is visited once.
  std::vector<std::uint32_t> counts(static_cast<std::size_t>(leaves_), 0);
  std::map<Node, std::uint32_t, std::greater<>> open = {{node, 1}};
  while (!open.empty()) {
    const auto [youngest, times] = *open.begin();
    open.erase(open.begin());
    const Term& term = terms_[youngest];
    if (term.kind == Kind::leaf) {
      counts[static_cast<std::size_t>(term.first)] = times;
      continue;
    }
    for (const Node operand : {term.left, term.right}) {
      if (operand == kUnset) continue;
      std::uint32_t& sum = open[operand];
      sum = saturating_sum(sum, times);
    }
  }
  return counts;
}

std::string Symbols::name_of(int contribution) const {
  return of_ranks_ ? fmt::format("rank {}'s contribution", contribution) : fmt::format("contribution {}", contribution);
}

std::string Symbols::complaint(Node node, int first, int last) const {
  const std::vector<std::uint32_t> counts = contributions(node);
  const std::string has = list_of(counts, [](std::uint32_t n) { return n > 0; });
  for (int leaf = 0; leaf < leaves_; ++leaf) {
    const std::uint32_t times = counts[static_cast<std::size_t>(leaf)];
    if (leaf < first || leaf >= last) {
      if (times > 0) return fmt::format("{} does not belong here (has {})", name_of(leaf), has);
    } else if (times == 0) {
      return fmt::format("{} is missing (has {})", name_of(leaf), has);
    }
  }
  for (int leaf = first; leaf < last; ++leaf) {
    const std::uint32_t times = counts[static_cast<std::size_t>(leaf)];
    if (times > 1) return fmt::format("{} is in it {} times", name_of(leaf), times);
  }
  return "its contributions cannot be told apart";  // a collision of fingerprints: not in practice
}

std::string Symbols::describe(Node node) const {
  if (node == kUnset) return "nothing";
  const Term& term = terms_[node];
  if (term.kind == Kind::leaf) return of_ranks_ ? fmt::format("rank {}'s data", term.first) : name_of(term.first);
  return fmt::format("a {} (of {} {})", term.kind == Kind::finish ? "converted value" : "partial result",
                     of_ranks_ ? "ranks" : "contributions",
                     list_of(contributions(node), [](std::uint32_t n) { return n > 0; }));
}

}  // namespace col::plan::symbolic
