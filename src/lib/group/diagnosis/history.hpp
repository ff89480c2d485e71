// The calls that the ranks of a group have made. So calls can be compared even if no rank waits for them: the first
// call in which ranks differ is the mismatch, whatever call they wait in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/channel.hpp>

#include "group/call/operation.hpp"

namespace col::group {

// The number of messages between two ranks so far, by (peer, tag).
using MessageCounts = std::map<std::pair<int, int>, std::uint64_t>;

// In place of the rank that another one waits for: it does not wait; or it does, and does not know for whom.
inline constexpr int kNobody = -1, kSomebody = -2;

// The last collective calls of one rank in words, oldest first.
struct Calls {
  struct Run {  // the same call, several times in a row
    std::uint64_t first = 0, times = 0;
    std::string text;  // Operation::encode()
  };
  std::vector<Run> runs = {};
  bool has_left = false;     // the group; no more calls will follow
  int held_up_by = kNobody;  // the rank of the job that this one waits for in the end, or one of these two
  std::string why = {};      // why it has left: the error, as by encode_error(); empty: no error

  MessageCounts sent = {};

  // The number of the next call; 0: nothing is known.
  std::uint64_t end() const { return runs.empty() ? 0 : runs.back().first + runs.back().times; }
  // The call of that number; nothing if it is not among these.
  std::optional<std::string> at(std::uint64_t sequence) const;

  // The value for the store.
  std::string encode() const;
  static Calls decode(std::string_view text);  // Requires: encode() has written it
};

// This rank's own calls. Every call is recorded, so they are recorded as numbers. Words are made only on request.
class History {
 public:
  // Adds a call that has got its number. Allocates only while it grows.
  void add(const CollectiveCall& call, std::uint64_t sequence) noexcept {
    last_ = sequence;
    if (call.call != repeats_ || repeats_ == 0) add_run(call, sequence);
  }

  std::uint64_t last() const { return last_; }  // number of the last call; 0: none
  Calls calls(int rank, int size) const;
  // Requires: calls().at(sequence) has a value.
  Operation operation(std::uint64_t sequence, int rank, int size) const;

 private:
  struct Run : CollectiveCall {  // of a user's function there is only the name
    std::uint64_t first = 0;     // it ends where the next one begins
  };

  void add_run(const CollectiveCall& call, std::uint64_t sequence) noexcept;
  const Run& run(std::size_t index) const { return runs_[(oldest_ + index) % runs_.size()]; }
  std::uint64_t end_of(std::size_t index) const { return index + 1 < runs_.size() ? run(index + 1).first : last_ + 1; }

  std::vector<Run> runs_;   // a ring once it is full
  std::size_t oldest_ = 0;  // in it
  std::uint64_t last_ = 0;
  std::uint64_t repeats_ = 0;  // the call that goes on with the newest run; 0: none does
};

// The number of the first call in which `other`, of rank `rank`, differs from `own`; nothing if no call is known on
// both.
std::optional<std::uint64_t> first_difference(const History& history, const Calls& own, int own_rank,
                                              const Calls& other, int rank, int size);

}  // namespace col::group
