// Finding receives and messages, and keeping those that wait.
#include <cstdint>
#include <deque>
#include <list>
#include <random>
#include <vector>

#include "backend/shm/matching.hpp"
#include "support/catch.hpp"

using namespace col::shm_backend;

namespace {

struct Node {
  std::uint64_t slot = 0;
  int peer = 0;
  Node* next = nullptr;
};

}  // namespace

TEST_CASE("shm matching: the table finds what a plain list finds", "[shm]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  MatchTable<Node> table;
  std::deque<Node> nodes;
  std::list<Node*> list;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t stream = random() % 120;
    const std::uint64_t slot = stream << 32 | random() % 3;  // the lower half does not matter
    const int peer = static_cast<int>(random() % 4);
    // More goes in than out at first, so that the table grows; then it empties.
    if (random() % 100 < (step < 10'000 ? 70U : 20U)) {
      nodes.push_back({slot, peer, nullptr});
      table.add(nodes.back());
      list.push_back(&nodes.back());
      continue;
    }
    Node* wanted = nullptr;
    for (Node* node : list) {
      if (node->slot >> 32 != stream || node->peer != peer) continue;
      wanted = node;
      break;
    }
    list.remove(wanted);
    REQUIRE(table.take(slot, [&](const Node& node) { return node.peer == peer; }) == wanted);
  }
}

TEST_CASE("shm tickets: an entry that is used again has another ticket", "[shm]") {
  Operations operations(0);
  Operation& first = operations.add();
  const std::uint64_t ticket = first.ticket;
  CHECK(operations.find(ticket) == &first);
  operations.remove(first);
  CHECK(operations.find(ticket) == nullptr);
  Operation& second = operations.add();
  CHECK(&second == &first);
  CHECK(second.ticket != ticket);
  CHECK(operations.find(ticket) == nullptr);
  CHECK(operations.find(second.ticket) == &second);
  CHECK(operations.find(0) == nullptr);
  CHECK(operations.find(12345) == nullptr);
}

TEST_CASE("shm unexpected messages: memory is used again, and a flood's is given back", "[shm]") {
  UnexpectedPool pool;
  Unexpected& one = pool.get(1000);
  CHECK(one.capacity >= 1000);
  const auto* const memory = one.data.get();
  pool.give_back(one);
  Unexpected& again = pool.get(600);
  CHECK(again.data.get() == memory);
  Unexpected& larger = pool.get(2000);
  CHECK(larger.capacity >= 2000);
  pool.give_back(larger);
  pool.give_back(again);
  Unexpected& small = pool.get(10);
  CHECK((small.data.get() == memory || small.data.get() == larger.data.get()));  // what is there, if too large
  pool.give_back(small);

  std::vector<Unexpected*> flood;
  for (int i = 0; i < 2000; ++i) flood.push_back(&pool.get(8192));
  std::size_t held = 0;
  for (Unexpected* message : flood) pool.give_back(*message);
  for (const Unexpected* message : flood) held += message->capacity;
  CHECK(held <= (4U << 20) + 8192);
  CHECK(held > (3U << 20));
}
