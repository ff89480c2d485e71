// Comes to the next epoch of a group, from the one before or from outside: does what the machine of epoch_change.hpp
// asks for, with keys of a store, this host, and a deadline for everything.
//
// It sleeps until the register changes, the words come that it has to hear, or the control page has news. Whose process
// has ended, as far as this host knows, is dead for all: where members are on several hosts, it says so in the store.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <col/job.hpp>
#include <col/request.hpp>

#include "group/join/epoch.hpp"
#include "group/join/epoch_change.hpp"
#include "group/join/epoch_keys.hpp"
#include "group/join/meeting.hpp"

namespace col::group {

// The group, as its renewal needs it.
struct Renewed {
  Epoch& epoch;
  std::map<Incarnation, PeerInfo> processes = {};  // of its members
  ControlPage* page = nullptr;                     // null if there is none
  RankRecord* record = nullptr;                    // this rank's record in it
  const Interrupt* interrupt = nullptr;
  bool sleeps = false;  // to join: for as long as it takes, until the others take it
  // End what is in flight in the group, and in the groups that were made from it, by that error. Unless it `is_urgent`,
  // a group that is not broken, and in which this rank has nothing in flight, is left to the ranks that are about to
  // leave a call there.
  std::function<void(const Error&, bool is_urgent)> end_group = {}, end_derived = {};
  // Connects the members of the record, this one as `number`. Blocks until then or until the deadline, and meanwhile
  // calls `look`, whose exceptions pass through.
  std::function<void(const EpochRecord&, int number, const Deadline&, const std::function<void()>& look)> connect = {};
  std::function<void()> disconnect = {};
};

// How long a change has taken, one after the other: until the members were decided, until this process had connected to
// them, and until all had.
struct Stages {
  Duration roll_call = {}, connect = {}, open = {};
};

// The members of a record, as they have said who they are.
Roster roster_of(const EpochRecord& record);

class Renewer {
 public:
  // `spec` is complete but for what the epoch says.
  Renewer(Renewed group, ChangeSpec spec, const Deadline& deadline);
  Renewer(const Renewer&) = delete;
  Renewer& operator=(const Renewer&) = delete;

  // Blocks until the change has ended, by what it returns: at the deadline, plus what the store needs to hear of that.
  // Throws what the interrupt has thrown, when the others have been told.
  Finish run();
  // The times of the record by which it has ended. Requires: run() has returned.
  Stages stages() const noexcept { return stages_; }

 private:
  struct LooksAgain {};  // ends a wait
  class Watch;

  void take_actions();
  template <class Go>
  void go(const Go& step);
  void go_on();
  void act(const ChangeAction& action);
  void write(const WriteRegister& action);
  void connect(const RecordPtr& record);
  void await_cause(const RecordPtr& record, const Error& error);
  void say(const Presence& word);
  void erase(const std::vector<Incarnation>& words);
  void end_group(bool is_urgent);
  void end_derived(bool is_urgent);
  void hear(const EpochKeys::Seen& seen);
  void sleep();
  bool joins() const { return group_.epoch.record == nullptr; }
  bool sleeps() const;
  bool is_here(const PeerInfo& process) const;
  void look_for_ends();
  void tell_end(Incarnation ended);
  void heed_time();
  void heed_patience();
  void take_interruption();
  Deadline next_look() const;

  Renewed group_;
  const Incarnation self_;
  EpochKeys keys_;
  EpochChange change_;
  Deadline deadline_;
  std::optional<Deadline> wait_over_ = {}, patience_over_ = {};
  std::uint64_t patience_for_ = 0;  // the epoch
  std::map<Incarnation, PeerInfo> processes_;
  std::uint32_t news_heard_ = 0;  // of the page
  bool is_to_look_ = false;       // at the register, before it sleeps
  bool is_slow_ = false;          // it has waited for so long that others may wait in the group, for this rank
  std::deque<ChangeAction> to_do_ = {};
  std::optional<WriteRegister> written_ = {};  // others are to be rung for it
  std::optional<Finish> end_ = {};
  std::exception_ptr interruption_ = {};
  Stages stages_ = {};
  Deadline::Clock::time_point began_ = Deadline::Clock::now();  // the stage
  std::uint64_t first_round_ = 0, last_round_ = 0;              // in which words of this change may stand
};

}  // namespace col::group
