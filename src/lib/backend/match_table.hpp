// How messages and receives find each other, in backends that accept messages before their receive is posted: the
// oldest of a stream first.
//
// A stream is the upper half of a slot (kSlotContent is the lower half). Within it, messages and receives pair in their
// order. So if the content and the length of the two differ, the ranks disagree and will never agree. This is checked
// before a byte is written. So no message is ever written beyond the end of a receive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/channel.hpp>

namespace col::backend {

constexpr std::uint64_t stream_of(std::uint64_t slot) noexcept {
  return slot & ~kSlotContent;
}

// Throws mismatch unless a message of rank `from` is what the receive that is next for it expects. Both have `slot` and
// `bytes`.
template <class Message, class Receive>
void require_equal(int from, const Message& message, const Receive& receive) {
  if (message.slot == receive.slot && message.bytes == receive.bytes) return;
  const std::string what = message.bytes == receive.bytes
                               ? fmt::format("{} bytes of another count or dtype than", message.bytes)
                               : fmt::format("{} bytes, and {} are in", message.bytes, receive.bytes);
  throw Error(ErrorCode::mismatch,
              fmt::format("rank {} sent {} the receive that is next for it; a send and its recv "
                          "must have the same count and dtype",
                          from, what),
              {}, from);
}

// A chained hash table of nodes that have `slot` and `next`. It owns none of them. Nodes of one stream are in one
// chain, in the order in which they were added.
template <class Node>
class MatchTable {
 public:
  MatchTable() : chains_(kFirstChains) {}

  bool empty() const noexcept { return count_ == 0; }

  void add(Node& node) {
    if (++count_ > 2 * chains_.size()) grow();
    append(chains_, node);
  }

  // Removes the first node of the stream of `slot` that `accepts` takes, and returns it; null if there is none.
  template <class Accepts>
  Node* take(std::uint64_t slot, Accepts accepts) noexcept {
    Chain& chain = chains_[index(slot, chains_.size())];
    Node* before = nullptr;
    for (Node* node = chain.first; node != nullptr; before = node, node = node->next) {
      if (stream_of(node->slot) != stream_of(slot) || !accepts(*node)) continue;
      (before == nullptr ? chain.first : before->next) = node->next;
      if (chain.last == node) chain.last = before;
      --count_;
      return node;
    }
    return nullptr;
  }

  // The first node of the stream of `slot`; null if there is none.
  const Node* first(std::uint64_t slot) const noexcept {
    const Node* node = chains_[index(slot, chains_.size())].first;
    while (node != nullptr && stream_of(node->slot) != stream_of(slot)) node = node->next;
    return node;
  }

 private:
  static constexpr std::size_t kFirstChains = 64;  // always a power of two
  struct Chain {
    Node* first = nullptr;
    Node* last = nullptr;
  };

  static std::size_t index(std::uint64_t slot, std::size_t chains) noexcept {
    const std::uint64_t hash = (stream_of(slot) * 0x9e3779b97f4a7c15ULL) >> 32;
    return static_cast<std::size_t>(hash) & (chains - 1);
  }
  static void append(std::vector<Chain>& chains, Node& node) noexcept {
    Chain& chain = chains[index(node.slot, chains.size())];
    node.next = nullptr;
    (chain.first == nullptr ? chain.first : chain.last->next) = &node;
    chain.last = &node;
  }
  void grow() {
    std::vector<Chain> larger(4 * chains_.size());
    for (const Chain& chain : chains_) {
      for (Node* node = chain.first; node != nullptr;) {
        Node* const next = node->next;
        append(larger, *node);
        node = next;
      }
    }
    chains_.swap(larger);
  }

  std::vector<Chain> chains_;
  std::size_t count_ = 0;
};

}  // namespace col::backend
