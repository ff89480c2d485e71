// Why does a wait not end? Answers it for one operation of one rank, while that rank waits.
//
// A rank that has waited for 100 ms puts what it called on the group's board (keys in the group's scope of the store)
// and reads what the others have put there for the same operation. Different texts are a mismatch. A process that is
// gone is peer_lost. Whoever is neither on the board nor known from the control page to have come this far is missing,
// and is named by the timeout. An operation that ends within 100 ms never touches the store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/backend.hpp>
#include <col/error.hpp>
#include <col/job.hpp>
#include <col/store.hpp>

namespace col::group {

// What the diagnosis knows of the group. Outlives every Diagnosis made from it.
struct Surroundings {
  std::string group;
  int rank = 0;
  std::vector<PeerInfo> peers;   // in rank order
  std::shared_ptr<Store> scope;  // shared with the backend's channel, which may outlive a destroyed group's handle
  std::shared_ptr<ControlPage> control;     // null when there is none
  std::vector<std::string> own_board_keys;  // what this rank has left on the board, to be taken off before the next
};

// Takes off the board what this rank has left there.
void clear_board(Surroundings& surroundings) noexcept;

// One thing that this rank does, and the ranks that must do the same (or, for a send, the matching recv).
struct Operation {
  std::string text;   // "allreduce of 10 float32, sum": equal on all ranks that match
  std::string board;  // "c/17" or "p/0/3/tag/5": the operation's place on the board
  std::uint64_t sequence = 0;
  bool collective = true;
  std::vector<int> counterparts;  // group ranks
};

class Diagnosis final : public WaitObserver {
 public:
  Diagnosis(Surroundings& surroundings, std::vector<Operation> operations);

  void on_slow(Duration waited) override;
  void on_timeout(Duration budget) override;

  // Turns what a backend threw ("connection closed") into the cause behind it, waiting a moment for the ranks that know
  // more to say so.
  Error explain(const Error& symptom);

 private:
  void post();
  void look_for_lost_peer() const;
  void look_for_failure() const;
  void look_for_mismatch(Duration waited);
  void judge(const Operation& operation, const std::map<int, std::string>& texts, Duration waited) const;
  std::optional<Error> known_cause() const;
  std::optional<RankActivity> lost_peer() const;
  bool has_arrived(const Operation& operation, int rank) const;
  int group_rank_of(int global_rank) const;

  Surroundings& surroundings_;
  std::vector<Operation> operations_;
  std::vector<std::map<int, std::string>> seen_;  // by operation: what counterparts put on the board
  std::optional<Duration> first_difference_;      // how long this rank had waited when it saw one
  bool posted_ = false;
};

}  // namespace col::group
