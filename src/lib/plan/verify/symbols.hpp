// Symbolic values: they say what an element of a buffer consists of.
//
// A value is a node of an expression (a rank's own data, two values reduced, a value converted), together with the
// element that it belongs to: its position in the input of its rank. Equal expressions are one node. So values compare
// by number, and a node knows at once whose contributions it contains.
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
  explicit Symbols(int ranks);

  Node leaf(int rank) const noexcept { return static_cast<Node>(rank) + 1; }
  // Require: neither is unset.
  Node reduce(Node left, Node right);
  Node finish(Node value);

  bool is_finished(Node node) const noexcept { return terms_[node].kind == Kind::finish; }
  // True if it contains exactly the contributions of ranks [first, last), each one once.
  bool holds_once(Node node, int first, int last) const noexcept;
  // The order in which the contributions are combined.
  FoldOrder order(Node node) const noexcept;

  // Says what is wrong with a node that does not contain [first, last) once, as the end of a sentence.
  std::string complaint(Node node, int first, int last) const;
  // "rank 3's data", "a partial result (of ranks 0..2, 5)", …
  std::string describe(Node node) const;

 private:
  enum class Kind : std::uint8_t { leaf, reduce, finish };
  // The sum of a random constant for each contribution. It is equal for equal multisets of ranks, and in practice for
  // no others.
  struct Fingerprint {
    std::uint64_t low = 0, high = 0;
    bool operator==(const Fingerprint&) const = default;
  };
  struct Term {
    Fingerprint ranks;
    std::uint32_t contributions = 0;  // stays at its maximum
    Node left = kUnset, right = kUnset;
    std::int32_t first = 0,
                 last = 0;  // contributions are neighbours [first, last), left before right; or first == last
    Kind kind = Kind::leaf;
    bool is_left_fold = false;  // ((x_first op …) op x_last-1)
  };

  Node intern(const Term& term);
  void grow();
  // How often each rank contributes.
  std::vector<std::uint32_t> contributions(Node node) const;

  int ranks_;
  std::vector<Fingerprint> prefix_;  // of ranks [0, i)
  std::vector<Term> terms_;
  std::vector<Node> slots_;  // hash table of terms that have operands, open addressing, a power of two
};

}  // namespace col::plan::symbolic
