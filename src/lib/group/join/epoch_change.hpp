// How the members of a group come to its next epoch, with those who wait to join: the part of one process in it.
//
//   revoke     the first who calls renew() writes "epoch e is over" into the register; waits in e end, on all
//   roll call  each survivor says that it is here, for epoch e+1
//   decide     when all have come that live, the lowest of them writes the record of e+1
//   connect    all whom the record lists connect under its token, and say so
//   open       when all have said so, the lowest survivor writes "open"; nobody returns before it reads that
//
// The register decides (EpochRecord): each of these writes is one compare_set from the value that the writer has read.
// So any survivor may do what the lowest should have done, once there is evidence that it has ended, and at most one of
// them succeeds. A record of which a member has ended becomes void, and the roll is called again for e+2; what is known
// of the dead and of late joiners is in the register then, so that all know it. A rank that gives up, for whatever
// reason, writes that the change has failed: all get the same error.
//
// It is a state machine: events come in, actions come out, in their order. It makes no system call, has no clock, and
// does not remember other changes. Evidence of a death is final: a process that was taken for dead is left out, and may
// join as another one. Silence is no evidence here: the deadline names who is silent, and `excluded` leaves it out.
//
// An action that was begun is ended before the next; a process may die between any two, and within each of them before
// or after its effect.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <col/error.hpp>
#include <col/types.hpp>

#include "group/join/epoch_record.hpp"

namespace col::group {

// ---- Actions. Each says what its executor has to do; the events tell it the outcome.

// All waits and operations in flight in the group end, on this process, with inputs intact: the epoch is over.
struct EndGroup {};
// The same in all groups that were made from it; and the other processes are told to do so, which may wait there.
struct EndDerived {};
// compare_set of the register. Outcome: on_register() with the value that stands there then, or on_register_gone().
struct WriteRegister {
  RecordPtr expected, desired;
};
// Wakes all who wait in the group, in its renewal, or to join it: the register has changed.
struct Ring {};
// The word of this process, for all to read: they look, and are told by on_look().
struct Say {
  Presence word;
};
// Connects to all members of the record, under its token. Outcome: on_connected(), on_connect_failed(), and for a peer
// whose process has ended on_lost().
struct Connect {
  RecordPtr record = {};
};
// Lets go of all that was made for that record.
struct Disconnect {
  std::uint64_t epoch = 0;
};
// on_patience_over() is due after that time, unless the epoch has opened.
struct Patience {
  std::uint64_t epoch = 0;
  Duration time = {};
};
// Members that are left out by the program, and have not come to be told: their launcher is to end them.
struct Evict {
  std::vector<Incarnation> members;
};
// Erases the words of these: they are not going to say anything.
struct Erase {
  std::vector<Incarnation> words;
};
// The end. One of three: the epoch is open with this process in it; it has left as its program wanted; or an error.
struct Finish {
  RecordPtr record = {};
  bool has_left = false;
  std::optional<Error> error = {};
  // For the next change by this process: the highest epoch of which it knows that it has failed.
  std::uint64_t settled = 0;
};

using ChangeAction =
    std::variant<EndGroup, EndDerived, WriteRegister, Ring, Say, Connect, Disconnect, Patience, Evict, Erase, Finish>;

// ---- The change

struct ChangeSpec {
  std::string group = {};
  Incarnation incarnation = 0;
  std::string address = {};
  std::uint64_t progress = 0;
  // A member: the record of the epoch that it is in. Null: it is to join.
  RecordPtr last = {};
  std::uint64_t settled = 0;  // of its last change, if that failed
  std::int64_t ticket = -1;   // to join: its place among those who wait
  // For members; `excluded`: by their numbers in `last`, ascending. A size of 0 means as many as in `last`. Nobody is
  // left out for `size`. `wait`: how long on_wait_over() comes after the begin, for those who join.
  int size = 0, min = 1;
  Duration wait = {};
  std::vector<int> excluded = {};
  int most = 0;  // ranks that there is room for; 0: any number
};

class EpochChange {
 public:
  // `dead`: those whose end is known already.
  explicit EpochChange(ChangeSpec spec, std::set<Incarnation> dead = {});

  // The value of the register; null: there is none.
  void on_register(RecordPtr value);
  void on_register_gone(const Error& why);
  // The same, and all words that stand there. In one event, so that whoever decides knows of all who wait to join.
  void on_look(RecordPtr value, const std::vector<Presence>& words);
  // Evidence that the process has ended.
  void on_lost(Incarnation incarnation);
  void on_connected(std::uint64_t epoch);
  void on_connect_failed(std::uint64_t epoch, const Error& why);
  void on_wait_over();
  void on_patience_over(std::uint64_t epoch);
  // The call's deadline has come; the second time, it ends without the register.
  void on_deadline();
  // The caller gives up: a signal, an exception.
  void on_interrupted(const Error& why);

  // The actions to do since the last call, in this order.
  std::vector<ChangeAction> take_actions() { return std::exchange(actions_, {}); }
  bool is_over() const { return state_.is_over; }
  // In words, for the message of a timeout and for a report.
  std::string awaited() const;

  // The words of this step that have not been heard: `missing` are those whose processes it waits for, among `all` that
  // may say one.
  struct Roll {
    std::uint64_t round = 0;
    bool is_connected = false;
    std::vector<Incarnation> all = {}, missing = {};
  };
  Roll roll() const;
  // True if this process is to decide, or to open: then it has to hear the words of the others.
  bool leads() const;

  // All that it knows.
  struct State {
    RecordPtr known = {};                        // the newest value of the register; null: none was read
    std::map<Incarnation, Presence> heard = {};  // the last word of each
    std::set<Incarnation> dead = {};
    Presence said = {};         // this process's last word
    RecordPtr connecting = {};  // the record under whose token it connects; null: none
    bool is_connected = false;  // it has connected for it
    bool is_writing = false;    // a write is under way
    bool is_wait_over = false;
    std::string giving_up = {};  // the error with which all are to end
    bool is_over = false;

    bool operator==(const State& other) const = default;
  };
  const State& state() const { return state_; }

 private:
  using Phase = EpochRecord::Phase;

  bool joins() const { return spec_.last == nullptr; }
  bool lives(Incarnation incarnation) const {
    return !state_.dead.contains(incarnation) && !state_.known->has_lost(incarnation);
  }
  bool is_excluded(Incarnation incarnation) const;
  const Presence* word_for(Incarnation incarnation, std::uint64_t round) const;

  void take(RecordPtr value);
  void take(const std::vector<Presence>& words);
  void go_on();
  void go_on_as_member();
  void go_on_as_joiner();
  void write(EpochRecord desired);
  void say(std::uint64_t round, bool is_connected);
  bool has_opened() const;
  void leave_void_record();
  void give_up(const Error& why);
  void fail_for_all(const std::string& error);
  void finish(Finish end);
  void finish_open();
  void leave();
  void call_roll();
  void connect_all();
  bool void_if_lost();
  bool all_connected() const;
  Error lateness() const;

  // The lowest survivor: epoch_lead.cpp.
  bool is_first_survivor(const EpochRecord& record) const;
  Incarnation leader() const;
  void decide();
  std::vector<int> absent() const;
  std::optional<Error> disagreement() const;
  std::vector<const Presence*> queue() const;
  EpochRecord next_record(const std::vector<int>& survivors, const std::vector<const Presence*>& newcomers) const;
  void clean_up();
  void evict();

  ChangeSpec spec_;
  std::vector<Incarnation> excluded_;  // ascending
  State state_;
  std::vector<ChangeAction> actions_;
};

}  // namespace col::group
