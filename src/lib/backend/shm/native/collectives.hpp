// The collectives of a group over its shared memory, on one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <col/channel.hpp>

#include "backend/shm/native/choice.hpp"
#include "backend/shm/native/conflict.hpp"
#include "backend/shm/native/direct_way.hpp"
#include "backend/shm/native/meetings.hpp"
#include "backend/shm/native/movement.hpp"
#include "backend/shm/native/own_slots.hpp"
#include "backend/shm/native/steps.hpp"
#include "backend/shm/native/symmetric_collective.hpp"
#include "backend/shm/native/waiter.hpp"
#include "backend/shm/segment/layout.hpp"
#include "backend/shm/segment/segment.hpp"
#include "core/clock/clock.hpp"

namespace col::shm_backend {

class Collectives {
 public:
  // Requires: all arguments outlive it. `group`: the group's name.
  Collectives(const std::string& group, Segment& segment, SymmetricHeap& heap, int rank, Attendant& attendant);

  // The calls of a group run one after the other, in the order of starting, which is the same on all ranks. The
  // functions below throw as Channel::wait(), and mismatch if the other ranks' call is a different one.

  // Starts one of native_entries(), which is moved on by any of the next three. Returns its number. What the request
  // points to must stay valid until the call has ended.
  std::uint64_t start(const Request& request);
  // Goes as far as it can without waiting for others. A mismatch is thrown only some time after it was found: whoever
  // can say more about it gets time to.
  void move_on();
  // Blocks until that call has ended.
  void wait(std::uint64_t number, WaitContext& wait);
  // The same as start() and wait().
  void run(const Request& request, WaitContext& wait);

  // How a call goes through the slots. `length`: as for Movement.
  struct Route {
    Route(Collectives& of, const Request& request, std::size_t length)
        : Route(of, request, length,
                choose(request, length * size_of(Movement::dtype_of(request, of.rank_)), of.size_, of.tuning_)) {}

    Movement movement;
    Way way;
    Place place;
    enum class Own : std::uint8_t { none, first, last };
    Own own;  // when what moves within this rank's own memory does

   private:
    Route(Collectives& of, const Request& request, std::size_t length, const Choice& choice);
  };
  // What was decided for a call that comes again in the same place: only its fingerprint changes.
  struct Prepared {
    const Request* request;
    Route route;
    bool may_be_symmetric;  // it has to ask once there is memory of col::alloc()
  };
  // Nothing where the way of a call is not decided by its request alone. Throws resource: there is no memory for it.
  std::optional<Prepared> prepare(const Request& request);
  // As start() of its request, which is not copied where nothing is before it.
  std::uint64_t start(const Prepared& prepared);
  // Begins what run() of the same request goes on with, if nothing is before it: else it returns false, and has done
  // nothing. `prepared` must stay valid until the call has ended.
  bool begin(const Prepared& prepared) noexcept;
  // Goes on with it, and waits no longer than for a moment. Returns whether it has ended; else run() goes on.
  bool end(const Prepared& prepared) noexcept;

  bool has_started(std::uint64_t number) const noexcept { return number <= made_; }
  bool has_ended(std::uint64_t number) const noexcept { return number <= ended_; }
  bool is_idle() const noexcept { return ended_ == made_; }
  // Call it when the group has ended for all, if calls are under way or one has thrown. When it returns, no rank writes
  // into this rank's memory any more, so the user can have it back. Only the destructor may come next.
  void give_up() noexcept;

 private:
  // The parts of a call; each is a Course.
  enum class Part : std::uint8_t {
    slots,              // moves the data through the slots: the whole of most calls
    counting,           // v-forms whose counts no rank knows completely, before `slots`
    telling,            // where the buffers are, for calls that may need no slots
    confirming_writes,  // after the work on symmetric memory
    confirming_reads,   // after the copies by CMA; the call goes on with `slots` if one rank could not read
  };
  template <class Moves>
  class Port;

  bool move_on_to(std::uint64_t number, WaitContext* wait, bool looks);
  template <class Body>
  void keeping_conflict(Body body) {
    try {
      body();
    } catch (const OtherCall& other) {
      conflict_.set(other);
    }
  }
  void end_head() noexcept;
  void want_next_part() const noexcept;
  // True if it has come after another moment. Else it is what this rank waits for.
  [[gnu::noinline]] bool look_on(const Awaited& awaited) noexcept;
  [[gnu::noinline]] bool have_all_done(std::uint64_t step) noexcept;
  int looks() const noexcept;
  // Its own.
  StepHeader& header(std::uint64_t step) const noexcept { return headers_[step & (kHeaders - 1)]; }

  [[gnu::noinline]] void begin(const Request& request);  // seldom: the room for it is not for those that are prepared
  void enter(const Request& request);
  bool can_begin(const Prepared& prepared) const noexcept;
  void take(const Route& route);
  bool move_head_on(WaitContext* wait);
  void move_prepared_on(bool looks);
  bool move_data_on();
  template <class Moves>
  bool walk(const Moves& moves);
  // `place`: of the most that a rank puts in a step.
  void begin_course(Part part, const Way& way, Place place);
  void begin_meeting(Part part, std::size_t bytes);
  void begin_after(DirectWay::Then then);
  void begin_with_slots();
  void begin_moving(std::size_t length);
  void look_at_processors();

  const std::string& group_;
  Segment& segment_;
  const Area area_;
  const Tuning& tuning_;  // in the segment
  const int rank_, size_;
  StepHeader* const headers_;  // of this rank, as is the next one
  StepsDone& done_;
  Waiter waiter_;
  bool knows_processors_ = false;

  // ---- The calls
  std::uint64_t made_ = 0, ended_ = 0;  // how many; they are numbered from 1
  std::deque<Request> queue_;           // those that were started and have not ended, but one that run() has begun
  const Request* head_ = nullptr;       // the one that is under way, in the queue or its caller's; null: none
  const Request* begun_ = nullptr;      // the one that begin() has begun; null: none
  bool has_looked_ = false;             // for a moment, in end(), and it has not come
  Conflict conflict_;

  // ---- The one that is under way
  Part part_ = Part::slots;
  Course course_;
  bool looks_ = true;  // whether the rank that moves it on may wait for a moment
  Awaited awaited_;    // what it waits for, once it cannot go on
  std::optional<Route> own_route_;
  const Route* route_ = nullptr;  // of the call, once it moves: own_route_, or a prepared one
  struct {
    Request request;  // head_, with another input
    std::vector<std::byte> input;
  } apart_;  // of a call in place whose data would be overwritten
  PrivateCounts counts_;

  // ---- What is known of all calls so far
  struct DoneSeen {
    std::vector<std::uint64_t> by_rank;  // its StepsDone when last seen
    std::uint64_t least = 0;             // of all others
  };
  OwnSlots own_slots_;
  std::uint64_t next_step_ = 1;
  Reuse reuse_{kSlots, kHeaders};
  DoneSeen done_seen_;
  std::vector<const std::byte*> sources_;
  DirectWay direct_;
};

}  // namespace col::shm_backend
