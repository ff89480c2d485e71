// Why does a wait not end? Answers it for one call of one rank, while that rank waits.
//
// A rank that has waited for 100 ms puts what it has called on the group's board (keys in the group's scope of the
// store): its last collectives, finished or not, and the messages that it waits for. It reads what the others have put
// there. The first call in which ranks differ is the mismatch, which may lie long before the one that is waited for:
// its data goes to slots that the others do not look at, as slots follow from all calls so far. A process that is gone,
// and that this call needs, is peer_lost. Whoever is neither on the board nor known from the control page to have come
// this far is missing, and is named by the timeout. A call that ends within 100 ms never touches the store.
//
// A rank that leaves the group says there that no more calls of it will follow. The last one to leave compares the
// calls of all: some ranks may have found nothing to wait for.
//
// A rank that has lost a connection leaves the group, and so those who wait for it lose theirs to it. Each says on the
// board whom it has lost: the one at the end of that chain, who says nothing, is the one that is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <col/backend.hpp>
#include <col/error.hpp>
#include <col/job.hpp>
#include <col/store.hpp>

#include "group/history.hpp"
#include "group/operation.hpp"

namespace col::group {

// What the diagnosis knows of the group. Outlives every Diagnosis made from it.
struct Surroundings {
  std::string group;
  int rank = 0;
  std::vector<PeerInfo> peers;              // in rank order
  std::shared_ptr<Store> scope;             // shared with the backend's channel, which may outlive the group's handles
  std::shared_ptr<ControlPage> control;     // null when there is none
  RankRecord* record = nullptr;             // this rank's in it
  std::vector<std::string> own_board_keys;  // what this rank has left on the board, to be taken off before the next
  std::uint64_t last_compared = 0;          // number of the call that compare_first() was last asked about; 0: none
  History history = {};                     // of this rank's collective calls
  MessageCounts sent = {}, received = {};
  std::uint64_t posted_calls = 0;          // how many of both are on the board
  std::function<void()> post_others = {};  // posts the calls of this process's other groups

  int size() const { return static_cast<int>(peers.size()); }

  // The rank in the group of the job's rank `global_rank`; -1 when it is no member.
  int rank_of(int global_rank) const;
  // What a member of this node is doing; nothing when it is on another node, or there is no control page.
  std::optional<RankActivity> activity_of(int rank) const;
};

// Whether a record, which cuts long names, means that group.
bool is_same_group(const std::string& recorded, const std::string& group);

// Takes off the board what this rank has left there. Of what compare_first() has left, which slower ranks may still
// have to read, the last rank to come here takes away everybody's.
void clear_board(Surroundings& surroundings) noexcept;

// This rank's calls, for all others to see. Throws what the store throws.
void post_calls(Surroundings& surroundings);

// For a rank that leaves: says so to the others, with the error of another group that made it do so, or, with `broken`,
// only that it looks at nothing any more. Returns the mismatch where this rank is the last to leave, and the calls of
// all differ. Takes two calls of the store, and the last rank two more for each rank; kStoreTime at most.
std::optional<Error> leave_board(Surroundings& surroundings, bool broken, const std::optional<Error>& why) noexcept;

class Diagnosis final : public WaitObserver {
 public:
  using Describe = std::function<std::vector<Operation>()>;

  // `describe` says what this call is; it is asked once, and only when the call is slow or has failed.
  Diagnosis(Surroundings& surroundings, Describe describe);
  Diagnosis(Surroundings& surroundings, std::vector<Operation> operations);

  bool on_slow(Duration waited) override;
  void on_timeout(Duration budget) override;

  // on_slow() for who does not wait itself: does not say whom it waits for.
  bool look();

  // Turns what a backend threw ("connection closed") into the cause behind it, waiting a moment for the ranks that know
  // more to say so.
  Error explain(const Error& symptom);

  // Puts the call on the board at once and waits until every counterpart has done so too, calling `meanwhile` again and
  // again. Throws the mismatch, and what
  // wait.check() throws. For COL_CHECK=strict.
  void compare_first(WaitContext& wait, const std::function<void()>& meanwhile);

 private:
  enum class Presence { arrived, absent, unknown };

  void describe();
  std::optional<std::string> ask(const std::string& key);
  void look_at_store(const std::function<void(Store&)>& look);
  void post();
  void look_for_failure();
  void look_for_lost_peer() const;
  void say_who_holds_up(bool thorough) const;
  void look_for_mismatch(bool last_chance);
  void look_for_different_calls(bool last_chance);
  std::optional<Error> different_calls(bool last_chance);
  void hear(int rank, const std::shared_ptr<const Calls>& own, const std::string& own_text);
  void throw_why_left(std::uint64_t sequence) const;
  void throw_judged(const Operation& own, const std::map<int, std::string>& posted, bool last_chance);
  std::optional<Error> abort_cause() const;
  std::optional<Error> lost_peer(bool needed_alone) const;
  bool is_needed(const RankActivity& gone) const;
  void post_loss(const Error& symptom);
  Error first_loss(const Error& symptom);
  Presence presence(const Operation& operation, int rank);
  int furthest_behind(const std::vector<int>& ranks) const;
  struct Accused {
    int rank = -1;  // of the group; -1: it cannot be told, or is no member
    std::string who;
    int world_rank = -1;  // of one that is no member
  };
  std::string waiting_messages() const;
  Accused accuse(const std::vector<int>& absent, const std::vector<int>& unknown) const;
  Error with_group(const Error& error) const;
  std::optional<Error> left_in_good_order(int rank) const;

  Surroundings& surroundings_;
  Describe describe_;
  std::vector<Operation> operations_;             // once described
  std::vector<std::map<int, std::string>> seen_;  // by operation: what counterparts put on the board
  // By rank: the calls of others. Shared by those whose calls are this rank's.
  std::map<int, std::shared_ptr<const Calls>> heard_;
  std::optional<Deadline> voting_ends_;  // set when this rank sees a difference
  bool posted_ = false;
  std::optional<Deadline> ask_again_;  // when the store has not answered
};

}  // namespace col::group
