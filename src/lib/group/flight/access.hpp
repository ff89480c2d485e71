// Who may touch what a group has in flight: a call of a user's thread, one at a time; and in between threads that move
// the operations on, and take only the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "core/clock/clock.hpp"
#include "core/clock/lock.hpp"
#include "core/fast_tls.hpp"
#include "group/flight/core.hpp"
#include "group/flight/flight.hpp"

namespace col::group {

// One word that says who touches what a group has in flight, so that a call takes one locked instruction and not three:
// a call, which others do not wait for but are refused; or a thread that moves things on, for moments.
class Gate {
 public:
  // False if a call uses the group. Waits for a thread that moves it on, which takes moments.
  bool enter() noexcept {
    // acquire pairs with the release in leave(): the next call, maybe in another thread, sees what this one wrote.
    return enter_at_once() || enter_slowly();
  }
  // False if it is not free.
  bool enter_at_once() noexcept {
    std::uint32_t state = 0;
    return state_.compare_exchange_strong(state, kUsed, std::memory_order_acquire, std::memory_order_relaxed);
  }
  // Nobody moves on what is used: there is no other bit.
  void leave() noexcept { state_.store(0, std::memory_order_release); }
  bool is_used() const noexcept { return (state_.load(std::memory_order_acquire) & kUsed) != 0; }

  // For threads that move the group on: std::unique_lock. They must not wait for one another while they hold it.
  bool try_lock() noexcept {
    core::may_yield();
    std::uint32_t state = 0;
    return state_.compare_exchange_strong(state, kMoved, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void lock() noexcept;
  // A call may have said meanwhile that it comes next.
  void unlock() noexcept { state_.fetch_and(~kMoved, std::memory_order_release); }

 private:
  static constexpr std::uint32_t kUsed = 1, kMoved = 2;

  bool enter_slowly() noexcept;

  std::atomic<std::uint32_t> state_{0};
};

// True in the thread that runs what was given to Work::then().
COL_FAST_TLS inline thread_local bool must_not_wait = false;

// Threads that use one group in turn, in the order of their arrival: ContextSpec::serialize.
class Turns {
 public:
  // Blocks until the threads that came before have left. Returns false if they have not by `until`. Throws what
  // wait.check() throws. A thread that has its turn may enter again, and leaves as often.
  bool enter(WaitContext& wait, const Deadline& until);
  void leave() noexcept;

 private:
  core::Mutex mutex_;
  core::Condition changed_;
  std::deque<std::thread::id> queue_;  // the first has its turn
  int entered_ = 0;                    // how often it has entered
};

class Access {
 public:
  Access(Core& core, Flight& flight)
      : core_(core), flight_(flight), state_(core.settings().serialize ? kTakesTurns : std::uint8_t{0}) {}
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  // Set once, before the first call: by it others keep the whole group while they move it on.
  void set_self(std::weak_ptr<Access> self) { self_ = std::move(self); }

  // Throws not_initialized if the group was destroyed, or if this is a forked child.
  void require_usable() const {
    if (core_.is_forked_child() || is_destroyed()) throw_unusable();
  }
  // Throws not_initialized in a forked child.
  void require_member() const {
    if (core_.is_forked_child()) throw_unusable();
  }
  // Throws invalid_argument in a function that this group runs.
  void require_not_inside() const;
  [[noreturn]] void throw_in_use() const;

  // Returns whether it was not destroyed before.
  bool mark_destroyed() noexcept { return (state_.fetch_or(kDestroyed) & kDestroyed) == 0; }
  bool is_destroyed() const noexcept { return (state_ & kDestroyed) != 0; }

  // For memory that is to be freed. Waits for others that move the group on, which takes moments, but not for a call:
  // an empty lock if the group is in use. A call that begins meanwhile waits for the lock and is not refused. It also
  // works when the group was destroyed, because a call in another thread may not have ended.
  std::unique_lock<Gate> lock_unless_used();
  // Empty if anybody uses the group or moves it on.
  std::unique_lock<Gate> try_lock();
  // For a thread that may be moving another group on: the holder of one group's gate must not wait for another's. Empty
  // while a call uses the group.
  std::unique_lock<Gate> lock_for_moments() { return is_moving_one_on() ? try_lock() : lock_unless_used(); }
  // For an operation that the group's end has ended. Empty if the group was not destroyed, or if this is a forked
  // child.
  std::unique_lock<Gate> lock_if_destroyed();

  // For a group that was destroyed while a call used it: ends what the call leaves in flight, when others move it on.
  void end_what_is_left() noexcept { is_left_over_ = true; }

  // For threads that are not in a call of this group. Returns whether anything is still in flight. Does not block.
  bool move_on_unattended();
  // For who waits for a message without a call: what has been posted by now begins, together, when others move the
  // group on. Returns false while a call uses the group, and nothing has been said then. Waits for others that move it
  // on, which takes moments.
  bool hand_over();
  // For an operation whose time is over, and which no thread waits for: breaks the group with a timeout that tells why.
  // Does nothing while another thread uses the group.
  void time_out(Pending& pending) noexcept;
  // For who waits, without a call, for what follows the operation: tells others for whom this rank waits, and that it
  // waits no more. Does nothing while a call uses the group. Waits for others that move it on, which takes moments.
  void say_whom_it_awaits(Pending& pending, Duration waited) noexcept;
  void withdraw(Pending& pending) noexcept;
  // Whether this thread is inside that function, for any group.
  static bool is_moving_one_on() noexcept;

 private:
  friend class Turn;
  friend class BriefTurn;
  friend class Use;
  friend class LastUse;

  static constexpr std::uint8_t kDestroyed = 1, kTakesTurns = 2;

  [[noreturn]] void throw_unusable() const;
  // What begins and ends every use. `timeout`: of a call that blocks.
  void enter(std::optional<Duration> timeout);
  // The same for a call that blocks, where nothing is in its way: else it returns false, and enter() says why. A thread
  // that moves this group on has its gate.
  [[gnu::always_inline]] bool enter_at_once() noexcept {
    if (state_ != 0 || must_not_wait || !gate_.enter_at_once()) return false;
    if (state_ != 0 || core_.is_forked_child()) [[unlikely]] {
      gate_.leave();
      return false;
    }
    if (is_left_to_others_) [[unlikely]]
      change_leaving(false);
    return true;
  }
  [[noreturn]] void refuse();
  [[gnu::always_inline]] void leave() noexcept {
    const bool takes_turns = (state_ & kTakesTurns) != 0;
    gate_.leave();
    if (takes_turns) turns_.leave();
  }
  void begin_turn(Duration timeout);
  bool begin_turn_within(Duration budget);
  bool wait_for_turn(const Deadline& deadline, const Deadline& until);
  void end_turn() noexcept;
  bool is_inside() const noexcept;
  // Runs it as a thread that moves the group on, and keeps its errors for the thread that waits. Does nothing where the
  // gate is not had.
  template <class Act>
  void move_on_by(std::unique_lock<Gate> lock, const Act& act) noexcept;
  // Called at the begin and the end of a call: operations in flight are moved forward by their own waits, or else by
  // the waits of all others. Requires: this thread has the gate.
  [[gnu::always_inline]] void leave_to_others(bool leaves) noexcept {
    if (is_left_to_others_ || !flight_.active().empty()) [[unlikely]]
      change_leaving(leaves && !flight_.active().empty() && !is_destroyed());
  }
  void change_leaving(bool leaves) noexcept;

  Core& core_;
  Flight& flight_;
  std::weak_ptr<Access> self_;
  Turns turns_;                      // of threads that want to use the group, if their calls are serialized
  std::atomic<std::uint8_t> state_;  // bits from above
  std::atomic<bool> is_left_over_{false};
  Gate gate_;                       // guards the member below, the channels, and what is in flight
  bool is_left_to_others_ = false;  // in Unattended
};

// Keeps other threads waiting between the parts of a call that consists of several and may block for `timeout`, if
// calls are serialized. Throws as Use.
class Turn {
 public:
  Turn(Access& access, Duration timeout) : access_(access) {
    access_.require_member();
    access_.require_not_inside();
    require_may_wait(access);
    access_.begin_turn(timeout);
  }
  ~Turn() { access_.end_turn(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Throws invalid_argument where a thread must not wait.
  static void require_may_wait(const Access& access);

 private:
  Access& access_;
};

// A turn for which a thread waits for a while only: false if others have theirs for longer. A budget of zero does not
// block.
class BriefTurn {
 public:
  BriefTurn(Access& access, Duration budget) : access_(access), has_begun_(begin(access, budget)) {}
  ~BriefTurn() {
    if (has_begun_) access_.end_turn();
  }
  BriefTurn(const BriefTurn&) = delete;
  BriefTurn& operator=(const BriefTurn&) = delete;

  explicit operator bool() const noexcept { return has_begun_; }

 private:
  static bool begin(Access& access, Duration budget) {
    access.require_member();
    access.require_not_inside();
    if (budget > Duration::zero()) Turn::require_may_wait(access);
    return access.begin_turn_within(budget);
  }

  Access& access_;
  const bool has_begun_;
};

// One call of a user's thread on a group: marks the group as in use by this thread.
class Use {
 public:
  // A call that blocks says for how long at most. Throws not_initialized, and invalid_argument: the group is in use, or
  // this thread must not wait.
  explicit Use(Access& access, std::optional<Duration> timeout = std::nullopt) : access_(access) {
    access_.enter(timeout);
    access_.leave_to_others(false);
  }
  // One that blocks. Mostly nothing is in its way.
  Use(Access& access, const Options& options) : access_(access) {
    if (access_.enter_at_once()) [[likely]]
      return;
    access_.enter(access_.core_.timeout_of(options));
    access_.leave_to_others(false);
  }
  ~Use() {
    access_.leave_to_others(true);
    access_.leave();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Access& access_;
};

// The use that destroys a group. False if a call is in progress, maybe in another thread: that has to be ended.
class LastUse {
 public:
  explicit LastUse(Access& access) noexcept : access_(access) {
    if (access_.is_inside() || !access_.gate_.enter()) return;
    has_entered_ = true;
    access_.leave_to_others(false);
  }
  ~LastUse() {
    if (has_entered_) access_.gate_.leave();
  }
  LastUse(const LastUse&) = delete;
  LastUse& operator=(const LastUse&) = delete;

  explicit operator bool() const noexcept { return has_entered_; }

 private:
  Access& access_;
  bool has_entered_ = false;
};

}  // namespace col::group
