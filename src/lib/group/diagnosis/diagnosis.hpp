// Finds out why a wait does not end, for one call of one rank, while that rank waits.
//
// A rank that has waited for 100 ms writes its calls on the group's board (keys in the group's scope of the store): its
// last collectives, finished or not, and the messages that it waits for. It reads what the others have written there.
// The first call in which ranks differ is the mismatch. This call may be much earlier than the one that the rank waits
// for: the slots of a call depend on all calls so far, so after a difference, its data goes to slots that the others do
// not read. If a process that this call needs is gone, the result is peer_lost. A rank is missing if it is not on the
// board, and the control page does not show that it has come this far. The timeout names missing ranks. A call that
// ends within 100 ms never touches the store.
//
// A rank that leaves the group writes on the board that it will make no more calls. The last rank to leave compares the
// calls of all ranks, because some ranks may have had no reason to wait.
//
// A rank that has lost a connection leaves the group, so the ranks that wait for it lose their connection to it. Each
// rank writes on the board which rank it has lost. The rank at the end of that chain, which writes nothing, is the one
// that is gone.
//
// A rank may wait in another group for a rank whose records are not to be seen here: it is on another host, or there is
// no control page. So a rank that waits for long says in all of its groups for whom, if that is known by then. Others
// pass this on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/channel.hpp>
#include <col/error.hpp>
#include <col/job.hpp>
#include <col/store.hpp>

#include "group/call/operation.hpp"
#include "group/diagnosis/announced.hpp"
#include "group/diagnosis/history.hpp"

namespace col::group {

// After this time, a wait records which rank it is for.
inline constexpr Duration kHoldupTime = std::chrono::milliseconds(250);

// If the job's store answers. All groups of a context share this: once it has not answered one of them, none asks it
// for a while, because one wait may look at several groups. Threads may use it at the same time.
class StoreHealth {
 public:
  bool is_mute() const noexcept;
  void has_not_answered() noexcept;
  // For the end of a wait, which asks one last time: unless the store has not answered a moment ago, as in a look that
  // the deadline has overtaken. So a wait ends late by one such time at most.
  void ask_again() noexcept;

 private:
  std::atomic<std::uint64_t> failed_ns_{0};  // when it has not answered; 0: it may be asked
};

// What the diagnosis knows about the group. It outlives every Diagnosis that is made from it.
struct Surroundings {
  std::string group;
  std::uint64_t token = 0;  // as the flight recorder names the group
  int rank = 0;
  std::vector<PeerInfo> peers;   // in rank order
  std::shared_ptr<Store> scope;  // shared with the backend's channel, which may outlive the group's handles
  backend::CommonMemoryOps* memory = nullptr;  // of the channel, while that lives; null if it has none
  std::shared_ptr<ControlPage> control;        // null if there is none
  RankRecord* record = nullptr;                // this rank's record in it
  std::vector<std::string> own_board_keys;     // what this rank has left on the board; removed before the next entry
  std::uint64_t last_compared = 0;             // number of the call for which compare_first() was last called; 0: none
  History history = {};                        // of this rank's collective calls
  MessageCounts sent = {}, received = {};
  std::uint64_t posted_calls = 0;  // how many of both are on the board
  int posted_holdup = kNobody;     // Calls::held_up_by there
  int holdup = kNobody;            // the same as it should be: the store may not have answered
  bool has_posted = false;         // anything of this
  // Posts the calls of this process's other groups, as post_calls() does. `to_all`: groups whose records show all get
  // `held_up_by`, too; otherwise their ranks see it there. Returns false if another thread had one of them.
  std::function<bool(std::optional<int> held_up_by, bool to_all)> post_others = {};
  std::uint32_t news_heard = 0;  // ControlPage::news() of which nobody here needs to hear any more
  std::shared_ptr<StoreHealth> store = std::make_shared<StoreHealth>();  // of all groups of the context
  std::unique_ptr<Announced> announced = {};                             // of a group on GPUs; null in others

  // True if the records on this host show what every rank does: else the ranks tell one another on the boards.
  bool records_show_all() const;
  // True if the store does not answer, or cannot: this host's launcher has lost the others, among which is the one that
  // serves it.
  bool store_is_mute() const;
  int size() const { return static_cast<int>(peers.size()); }

  // The rank in the group of the job's rank `global_rank`; -1 if it is not a member.
  int rank_of(int global_rank) const;
  // The record of the job's rank `global_rank`; null if it is not of this node, or if there is no control page.
  const RankRecord* record_of(int global_rank) const;
  // What a member on this node is doing; nothing if it is on another node, or if there is no control page.
  std::optional<RankActivity> activity_of(int rank) const;
  // The number of the last call that a member on this node has come to. Requires: that is what it does in this group.
  std::uint64_t last_call(const RankActivity& of) const;
};

// Whether a record, which cuts long names, means this group.
bool is_same_group(const std::string& recorded, const std::string& group);

// Where a rank writes a message on the board.
std::string board_key(const Operation& operation, int rank);

// Removes what this rank has left on the board. Slower ranks may still have to read the entries of compare_first(); so
// the last rank that comes here removes these for all ranks.
void clear_board(Surroundings& surroundings) noexcept;

// Writes this rank's calls on the board, for all others to see, and whom it waits for in the end: as Calls::held_up_by.
// Without a value, what is posted of that stays. Throws what the store throws.
void post_calls(Surroundings& surroundings, std::optional<int> held_up_by);

// Removes them, for a rank that leaves without a word.
void unpost_calls(Surroundings& surroundings) noexcept;

// For a rank that leaves: tells the others, with the error of another group that was the reason; or, with `broken`,
// only that it reads nothing any more. Returns the mismatch if this rank is the last to leave and the calls of the
// ranks differ. Where the ranks have memory in common, it needs no store. Else it makes two calls of it; the last rank
// makes two more for each rank. Takes kStoreTime at most.
std::optional<Error> leave_board(Surroundings& surroundings, bool broken, const std::optional<Error>& why) noexcept;

// The error of the others, where `rank` has left the group because of that error of another one.
Error left_because(const Surroundings& surroundings, int rank, const Error& why);

// The rank that a call waits for in the end, by the records of this node's ranks (holdup.cpp): a rank that does not
// wait, or is stopped, while others wait for it.
struct Holdup {
  RankActivity activity;
  int member = -1;  // its rank in the group; -1: it is not a member
  int via = -1;     // the member that waits for it and that this call waits for; -1: the call waits for it directly

  // "rank 2 is in none of col's waits: … (last seen in allreduce of group 'row')"
  std::string text() const;
};

// The rank at the end of the chains that begin with the operations' counterparts. If there are several: a stopped one,
// else one that has not come to the operation, else the one that has been silent for the longest time. Nothing if the
// records do not tell. It checks for stopped ranks only if there are few ranks, or if it is `thorough`.
std::optional<Holdup> find_holdup(const Surroundings& surroundings, const std::vector<Operation>& operations,
                                  bool thorough);

// " (last seen in allreduce of group 'row')"; empty if nothing has been seen.
std::string last_seen(const RankActivity& activity);

class Diagnosis final : public WaitObserver {
 public:
  using Describe = std::function<std::vector<Operation>()>;

  // `describe` returns what of this call has not ended. It is called only if the call is slow or has failed.
  Diagnosis(Surroundings& surroundings, Describe describe);
  Diagnosis(Surroundings& surroundings, std::vector<Operation> operations);
  // From now on, a long wait says on the boards whom it waits for in the end. For one that withdraws that at its end.
  void tell_others() noexcept { tells_ = true; }
  // The wait has ended well: this rank waits for nobody any more.
  void withdraw() noexcept;
  // For a wait that looks in another way: says it, once the wait has lasted for so long that others may ask.
  void say_whom_it_awaits(Duration waited);

  bool on_slow(Duration waited) override;
  void on_news(std::uint32_t news) override;
  void on_timeout(Duration budget) override;

  // on_slow() for a caller that does not wait itself. It does not say which rank it waits for.
  bool look();
  // The timeout for a caller that gives up and lets the call go on: it is `late` ("has not ended after 1s"). Throws as
  // look(). After less than 100 ms, it asks only the records.
  Error overdue(std::string_view late);

  // Replaces an error of a backend ("connection closed") by the cause behind it. It waits for a moment, so that ranks
  // that know more can say so.
  Error explain(const Error& symptom);

  // Writes the call on the board at once, and waits until every counterpart has done so too. Meanwhile it calls
  // `meanwhile` again and again. Throws the mismatch, and what wait.check() throws. For COL_CHECK=strict.
  void compare_first(WaitContext& wait, const std::function<void()>& meanwhile);

 private:
  enum class Presence { arrived, absent, unknown };

  void describe();
  std::optional<std::string> ask(const std::string& key);
  void look_at_store(const std::function<void(Store&)>& look);
  void post();
  void look_for_failure(bool last_chance = false);
  void look_for_lost_peer();
  void say_who_holds_up(bool thorough);
  void tell(int world_rank);
  void look_for_mismatch(bool last_chance);
  void look_for_different_calls(bool last_chance);
  std::optional<Error> different_calls(bool last_chance);
  void hear(int rank, const std::shared_ptr<const Calls>& own, const std::string& own_text);
  std::optional<std::string> said_by(int rank);
  std::optional<Error> why_left(int rank);
  void throw_why_left(std::uint64_t sequence);
  [[noreturn]] void throw_explained(const Error& why);
  void throw_judged(const Operation& own, const std::map<int, std::string>& posted, bool last_chance);
  std::optional<Error> abort_cause() const;
  std::optional<Error> lost_peer(bool needed_alone) const;
  const PeerInfo* replaced_member(const RankRecord& record) const;
  Error taken_place(const PeerInfo& member, std::int64_t holder) const;
  RankActivity first_to_end(const RankActivity& gone) const;
  bool is_needed(const RankRecord& record, const RankActivity& gone) const;
  bool has_done_its_part(const RankRecord& record, const RankActivity& gone, const Operation& operation) const;
  void post_loss(const Error& symptom);
  Error first_loss(const Error& symptom);
  bool has_made(const Operation& operation, int rank) const;
  Presence presence(const Operation& operation, int rank);
  std::uint64_t progress_of(int rank) const;
  int furthest_behind(const std::vector<int>& ranks, bool only_one) const;
  bool waits_before(const Operation& operation, int rank) const;
  struct Accused {
    int rank = -1;  // rank in the group; -1: not known, or not a member
    std::string who;
    int world_rank = -1;    // rank in the job, if it is not a member
    bool is_final = false;  // it is seen that it does not wait, or is stopped
  };
  std::string waiting_messages() const;
  Error timeout(std::string_view late, std::string_view advice, bool thorough);
  Accused accuse(bool thorough);
  Accused accuse(const std::vector<int>& absent, const std::vector<int>& unknown, bool thorough);
  int world_rank_of(const Accused& accused) const;
  int awaited_by(int member);
  std::optional<int> end_of_chain(int first);
  Accused follow(Accused accused);
  Error with_group(const Error& error) const;
  std::optional<Error> missed_by_leaver(int rank) const;
  std::optional<Error> left_in_good_order(int rank) const;

  Surroundings& surroundings_;
  Describe describe_;
  std::vector<Operation> operations_;             // set once described
  std::vector<std::map<int, std::string>> seen_;  // by operation: what counterparts have written on the board
  // The calls of others, by rank. Ranks whose calls equal this rank's share one object.
  std::map<int, std::shared_ptr<const Calls>> heard_;
  std::optional<Deadline> voting_ends_;  // set when this rank sees a difference
  std::optional<Deadline> finds_out_;    // set when others say that this rank is lost
  std::optional<Error> explained_;       // what a look has thrown, with the cause behind it
  bool posted_ = false;
  bool tells_ = false;
  int told_ = kNobody;  // whom this wait is for, as the boards say
  bool has_told_all_ = true;
};

// A Diagnosis that is made when somebody asks for it: most calls end before. It lives as long as the wait, under the
// lock of the group.
class LateDiagnosis final : public WaitObserver {
 public:
  // `what` must outlive it, and have diagnose(), which returns the Diagnosis.
  template <class What>
  LateDiagnosis(Surroundings& surroundings, const What& what)
      : surroundings_(surroundings),
        what_(&what),
        make_([](const void* of, Surroundings& in) { return static_cast<const What*>(of)->diagnose(in); }) {}

  // After an error, others may still have to be told for whom this rank has waited.
  ~LateDiagnosis() {
    if (diagnosis_ && std::uncaught_exceptions() <= exceptions_) diagnosis_->withdraw();
  }
  LateDiagnosis(const LateDiagnosis&) = delete;
  LateDiagnosis& operator=(const LateDiagnosis&) = delete;

  Diagnosis& get() {
    if (!diagnosis_) {
      diagnosis_.emplace(make_(what_, surroundings_));
      diagnosis_->tell_others();
      exceptions_ = std::uncaught_exceptions();
    }
    return *diagnosis_;
  }
  bool on_slow(Duration waited) override { return get().on_slow(waited); }
  void on_news(std::uint32_t news) override {
    if (surroundings_.news_heard != news) get().on_news(news);
  }
  void on_timeout(Duration budget) override { get().on_timeout(budget); }

 private:
  Surroundings& surroundings_;
  const void* const what_;
  Diagnosis (*const make_)(const void* what, Surroundings& surroundings);
  std::optional<Diagnosis> diagnosis_;
  int exceptions_ = 0;
};

// Looks now and then why an operation does not end, for a rank that does not wait for it: one that tests it again and
// again, leaves it to the waits of others, or waits for it a little at a time.
class Watch final : private WaitObserver {
 public:
  Watch(Surroundings& surroundings, Diagnosis::Describe describe)
      : diagnosis_(surroundings, std::move(describe)),
        wait_(Deadline::after(Deadline::kMaxBudget), nullptr, nullptr, this) {}

  // Cheap, but when a look is due. Throws why the operation cannot end.
  void look() { wait_.look(); }
  Diagnosis& diagnosis() { return diagnosis_; }

 private:
  bool on_slow(Duration /*waited*/) override { return diagnosis_.look(); }
  void on_timeout(Duration /*budget*/) override {}  // nobody waits

  Diagnosis diagnosis_;
  WaitContext wait_;
};

}  // namespace col::group
