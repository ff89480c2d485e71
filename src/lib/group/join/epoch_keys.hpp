// The register of a group's epochs, and the words of those who renew it, as keys of a store.
//
//   register        the record, which compare_set alone changes. Not set: the group still has its first epoch
//   after/VERSION   the value that has followed the one of that version: who waits for a change sleeps on it
//   word/WHO/STEP   the last word of a process: its round, and a "c" if it has connected
//   gone/WHO        somebody of its host has seen that process end
//   queue           those who wait to join, first come first
//   queued/TURN     the queue has changed for the TURNth time: wakes who leads
//   tickets         how many have come to it
//
// Only the register counts. The second kind wakes those who wait; where its writer has died in between, they find the
// value when they look again. Words have their step in the name, so that who leads can sleep until they are there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <col/job.hpp>
#include <col/store.hpp>

#include "group/join/epoch_change.hpp"
#include "group/join/epoch_record.hpp"
#include "store/base/run.hpp"

namespace col::group {

class EpochKeys {
 public:
  // `first`: the record of the first epoch. `store` is shared with the epochs that come.
  EpochKeys(std::shared_ptr<Store> store, RecordPtr first) : store_(std::move(store)), first_(std::move(first)) {}
  EpochKeys(const EpochKeys&) = delete;
  EpochKeys& operator=(const EpochKeys&) = delete;

  // Each makes one trip to the store, and throws what that and `wait` throw.

  // The register and the words. Those that stand for another step than the roll's are not read, but for those of all
  // who wait to join.
  struct Seen {
    RecordPtr value = {};  // of the register; null: not looked at
    std::vector<Presence> words = {};
    std::vector<Incarnation> gone = {};
    bool is_whole = false;  // with those who wait to join
  };
  Seen look(const EpochChange::Roll& roll, bool with_queue, WaitContext& wait);
  // Sleeps until the register has another value than that of `version`, all words that the roll misses are there, or
  // one of their processes is known to have ended; `with_queue`, until that has changed since the last look. Tells what
  // has come.
  Seen sleep(std::uint64_t version, const EpochChange::Roll& roll, bool with_queue, WaitContext& wait);
  // Returns the value that stands there then: `desired`, or another one.
  RecordPtr swap(const EpochRecord& expected, const RecordPtr& desired, WaitContext& wait);
  // Wakes who sleeps: `value` has followed `before`.
  void ring(const EpochRecord& before, const EpochRecord& value, WaitContext& wait);
  // Takes the place of this process's last word.
  void say(const Presence& word, WaitContext& wait);
  void tell_end(Incarnation ended, WaitContext& wait);
  // Erases all that these have said in any round from `first` to `last`, and that they have ended.
  void erase(const std::vector<Incarnation>& who, std::uint64_t first, std::uint64_t last, WaitContext& wait);

  // A place behind all who wait to join.
  static std::int64_t draw_ticket(Store& store) { return store.add("tickets", 1); }
  bool anybody_waits(WaitContext& wait);

 private:
  void change_queue(const std::function<bool(std::vector<Incarnation>&)>& change, WaitContext& wait);
  RecordPtr value_of(const std::optional<std::string>& text) const;
  void run(std::vector<store::Call>& calls, WaitContext& wait) { store::run(*store_, calls, wait); }

  const std::shared_ptr<Store> store_;
  const RecordPtr first_;
  std::string own_word_ = {};            // its key; empty: none
  std::uint64_t turn_ = 0;               // of the queue, when it was last read
  std::vector<Incarnation> queue_ = {};  // then
};

}  // namespace col::group
