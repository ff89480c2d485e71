// Symbolic values: they say what an element of a buffer consists of.
//
// A value is a node of an expression (a contribution, two values reduced, a value converted), together with the
// element that it belongs to: its position in that contribution. A rank's input is one contribution, or, in
// Order::tree, any number of them. Equal expressions are one node. So values compare by number, and a node knows at
// once whose contributions it contains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <col/plan.hpp>

namespace col::plan::symbolic {

using Node = std::uint32_t;
inline constexpr Node kUnset = 0;  // memory that nobody has written

// `count` neighbouring elements with equal history: element `index + i` of `node`.
struct Piece {
  std::size_t count = 0;
  Node node = kUnset;
  std::size_t index = 0;
};

class Symbols {
 public:
  // `of_ranks`: each rank's data is one contribution, and messages call it so.
  Symbols(int contributions, bool of_ranks);

  Node leaf(int contribution) const noexcept { return static_cast<Node>(contribution) + 1; }
  // Require: neither is unset.
  Node reduce(Node left, Node right);
  Node finish(Node value);

  bool is_finished(Node node) const noexcept { return terms_[node].kind == Kind::finish; }
  // True if it contains exactly the contributions [first, last), each one once.
  bool holds_once(Node node, int first, int last) const noexcept;
  // The order in which the contributions are combined.
  FoldOrder order(Node node) const noexcept;
  // True if they are combined as Order::tree says.
  bool is_tree(Node node) const noexcept { return terms_[node].is_tree; }

  // Says what is wrong with a node that does not contain [first, last) once, as the end of a sentence.
  std::string complaint(Node node, int first, int last) const;
  // "rank 3's data", "a partial result (of ranks 0..2, 5)", …
  std::string describe(Node node) const;

 private:
  enum class Kind : std::uint8_t { leaf, reduce, finish };
  // The sum of a random constant for each contribution. It is equal for equal multisets of them, and in practice for no
  // others.
  struct Fingerprint {
    std::uint64_t low = 0, high = 0;
    bool operator==(const Fingerprint&) const = default;
  };
  struct Term {
    Fingerprint members;
    std::uint32_t contributions = 0;  // stays at its maximum
    Node left = kUnset, right = kUnset;
    std::int32_t first = 0,
                 last = 0;  // contributions are neighbours [first, last), left before right; or first == last
    Kind kind = Kind::leaf;
    bool is_left_fold = false;  // ((x_first op …) op x_last-1)
    bool is_tree = false;       // neighbours level by level, an odd last one goes up as it is
  };

  Node intern(const Term& term);
  void grow();
  // How often each of them is in it.
  std::vector<std::uint32_t> contributions(Node node) const;

  std::string name_of(int contribution) const;

  int leaves_;
  bool of_ranks_;
  std::vector<Fingerprint> prefix_;  // of contributions [0, i)
  std::vector<Term> terms_;
  std::vector<Node> slots_;  // hash table of terms that have operands, open addressing, a power of two
};

}  // namespace col::plan::symbolic
