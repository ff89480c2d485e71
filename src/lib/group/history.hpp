// What the ranks of a group have called, so that calls can be compared though they are not waited for: the first one in
// which ranks differ is the mismatch, whatever call they wait in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/backend.hpp>

#include "group/describe.hpp"
#include "group/dispatch.hpp"
#include "group/operation.hpp"

namespace col::group {

class Pending;

// Of messages between two ranks, by (peer, tag): how many there have been.
using MessageCounts = std::map<std::pair<int, int>, std::uint64_t>;

// The last collective calls of one rank in words, oldest first, and whether that is all.
struct Calls {
  struct Run {  // the same call again and again
    std::uint64_t first = 0, times = 0;
    std::string text;  // Operation::encode()
  };
  std::vector<Run> runs = {};
  bool has_left = false;  // the group: no more will follow
  std::string why = {};   // it has left: after which error, by encode_error(); empty: none

  MessageCounts sent = {};

  // The number of the call that would be next; 0: nothing is known.
  std::uint64_t end() const { return runs.empty() ? 0 : runs.back().first + runs.back().times; }
  // Nothing where that call is not among these.
  std::optional<std::string> at(std::uint64_t sequence) const;

  // As a value in the store.
  std::string encode() const;
  static Calls decode(std::string_view text);  // Requires: encode() has written it
};

// This rank's own calls. Kept for every call, and so in numbers; words are made when somebody asks.
class History {
 public:
  // Adds a collective call that has been given its number. Allocates only while it grows.
  void add(const Pending& pending) noexcept;

  std::uint64_t last() const { return last_; }  // number of the last call; 0: none
  Calls calls(int rank, int size) const;
  // Requires: calls().at(sequence) is something.
  Operation operation(std::uint64_t sequence, int rank, int size) const;

 private:
  struct Run {
    std::uint64_t call = 0;  // Pending::call
    std::uint64_t first = 0, times = 0;
    Request request = {};  // spans point to the counts below; a function of the user's is only its name
    CallForm form = {};
    std::string words = {};
    std::shared_ptr<const Decision> decision = {};  // shared with the dispatcher: form points into it
    std::vector<std::size_t> in_counts = {}, out_counts = {};
  };

  Run& next();
  static Operation describe(const Run& run, std::uint64_t sequence, int rank, int size);

  std::vector<Run> runs_;   // a ring once it is full
  std::size_t oldest_ = 0;  // in it
  std::uint64_t last_ = 0;
};

// The number of the first call in which `other`, of rank `rank`, differs from `own`; nothing where both know of none.
std::optional<std::uint64_t> first_difference(const History& history, const Calls& own, int own_rank,
                                              const Calls& other, int rank, int size);

}  // namespace col::group
