// The operations of a group that are in flight, and how they move on.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <col/channel.hpp>
#include <col/group.hpp>

#include "group/flight/lanes.hpp"
#include "group/flight/mailbox.hpp"
#include "group/flight/pending.hpp"
#include "group/flight/recording.hpp"
#include "group/flight/trace.hpp"

namespace col::group {

// How far Flight::progress_all() goes on GPUs.
struct Reach {
  // Messages between GPUs that have been posted are handed over. NCCL does one thing after another: they begin when the
  // rank waits, together, so that a send does not hold up the receive which its peer waits for first.
  bool hands_over = true;
  // No operation is looked at after one that has not ended: mostly they end in their order.
  bool to_first = false;
};

// Requires for all functions: the group's lock is held. If an operation fails, the group is broken, and they throw.
class Flight {
 public:
  Flight(Core& core, const Lanes& lanes, Mailbox& mailbox)
      : core_(core), lanes_(lanes), mailbox_(mailbox), recording_(core) {}
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // In the order of starting.
  const std::vector<PendingPtr>& active() const { return active_; }
  Trace& trace() { return trace_; }
  Recording& recording() { return recording_; }

  // A blank operation, maybe one that was used before.
  PendingPtr acquire();
  // Takes an operation out of the pool for reuse, which its caller keeps, and puts another one in, if it is not null.
  void swap_pooled(const PendingPtr& kept, const PendingPtr& given);

  void add(const PendingPtr& pending) { active_.push_back(pending); }
  // For a collective that runs by a plan: it begins when its input has been copied to where it runs. Plans of several
  // calls may begin in any order.
  void launch(const PendingPtr& pending);
  // For an operation that was not in flight, or has ended there.
  void finish(Pending& pending) {
    if (!pending.parts.empty()) return finish_whole(pending);
    recording_.note_end(pending, active_.size() <= 1);
    pending.staging.reset();
    // A user's function may hold what its owner wants back.
    if (pending.request.op.kind() == Op::Kind::user) pending.request.op = {};
    if (pending.collective) trace_.add(pending);
    pending.end();
  }

  static constexpr Reach kWait{}, kLook{.hands_over = false}, kGlance{.hands_over = false, .to_first = true};
  // Moves on everything that is in flight. Throws what breaks the group.
  void progress_all(Reach reach = kWait);
  // Any thread may ask.
  bool holds_back() const noexcept { return lanes_.own().can.holding != nullptr; }
  // All that has been posted by now may be handed over, as of Reach, by whoever moves it on. Requires: holds_back().
  void hand_over();
  // Moves on what goes over the host in a group for memory of GPUs. Throws what breaks the group, and leaves it to the
  // caller to break it.
  void progress_hosted();

  // Before a wait for `pending`, which the end of a capture holds up that may be this thread's own: blocks for a while,
  // and then throws unavailable, which breaks nothing. Without `pending`: before a call that comes after messages which
  // the capture holds up.
  void outlast_capture(std::string_view call, Duration timeout, const Pending* pending = nullptr);
  // Blocks until `pending` has ended, at most for its timeout. Throws its error.
  void await(Pending& pending);
  // The same for a part of a call, until the deadline of the whole.
  void await_part(Pending& pending, const Deadline& deadline);
  // The same for one whose time is over.
  void time_out(Pending& pending);
  // What the stream gets from now on comes after `pending`, which ends on the device and has not ended. Also throws
  // what is wrong with the stream, which breaks nothing.
  void hold_up(Stream stream, Pending& pending);
  // The error where no stream can wait.
  Error ends_on_host(const Pending& pending) const;
  // For what has ended on the device: blocks while ranks of a group on GPUs are known to have announced different
  // calls, until the wait says which.
  void await_alike(WaitContext& wait);
  // Blocks until every collective in flight has ended, each for its own timeout.
  void await_collectives();
  // Breaks the group when `pending` cannot end, for a rank that does not wait for it.
  void look_why(Pending& pending);
  // Ends what was started and dropped, for a while. Returns the mismatch that keeps it from ending.
  std::optional<Error> drain(const std::optional<Error>& why) noexcept;
  // Drops all, with that error. Requires: the channels are broken.
  void abandon(const Error& cause) noexcept;

  // Called in a catch block: breaks the group with the present exception, which is about `pending`.
  [[noreturn]] void fail(const Pending& pending);

  // The input of a premul_sum becomes a multiplied copy in `scaled`, which has `room` bytes and gets more if need be.
  static void scale(const Request& request, const Decision& decision, std::unique_ptr<std::byte[]>& scaled,
                    std::size_t& room, exec::Operands& operands);
  // Copies what a call reads, or has written, and blocks until that is done.
  static void fetch(Pending& pending, WaitContext& wait) {
    if (pending.staging) copy_in(pending, wait);
  }
  static void give_back(Pending& pending, WaitContext& wait) {
    if (pending.staging) copy_back(pending, wait);
  }
  static void await_copies(Staging& staging, WaitContext& wait);
  // One turn of a wait that polls.
  static void pause(int turn);

 private:
  static void finish_whole(Pending& pending);
  bool awaits_capture(const Pending* pending) const;
  static void copy_in(Pending& pending, WaitContext& wait);
  static void copy_back(Pending& pending, WaitContext& wait);
  void execute(Pending& pending);
  void exchange_counts(Pending& pending);
  bool progress(Pending& pending);
  bool move_on(Pending& pending);
  std::optional<int> test(Channel& channel, Ticket ticket) const;
  bool is_on_gpu(const Pending& pending) const;
  bool ranks_differ() const noexcept;
  std::optional<Error> last_difference();
  template <class Limit>  // a Deadline, or a Duration that begins when the rank really waits
  void await(Pending& pending, const Limit& limit);
  void await_parts(const Pending& pending);
  void await_until(Pending& pending, WaitContext& wait);
  void block(Pending& pending, WaitContext& wait, int turn);

  Core& core_;
  const Lanes& lanes_;
  Mailbox& mailbox_;
  Reach reach_ = kWait;  // of the progress that goes on
  std::vector<PendingPtr> active_;
  std::vector<PendingPtr> pool_;  // for reuse
  Recording recording_;
  Trace trace_;
};

// The operations of other groups of this process that no thread is in a call of.
void move_others_on() noexcept;

}  // namespace col::group
