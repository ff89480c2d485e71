// One operation of a group that has been started: a collective that runs by a plan, or messages.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/channel.hpp>
#include <col/device.hpp>
#include <col/group.hpp>

#include "backend/capabilities.hpp"
#include "exec/executor.hpp"
#include "group/diagnosis/diagnosis.hpp"
#include "group/flight/prepared.hpp"
#include "group/staging/staging.hpp"

namespace col::group {

// One message of a point-to-point operation.
struct Leg {
  bool sending = false;
  int peer = 0;           // kAnyPeer: from the first peer that sends
  bool from_any = false;  // kAnyPeer is intended, and not a user's wrong number
  int tag = 0;
  ConstTensorView view = {};           // what is sent, or where it is received
  void* destination = nullptr;         // the same memory, writable, if it is received
  std::uint64_t number = 0;            // the number of the message between the two ranks, by tag
  bool numbered = true;                // false: `number` may be wrong
  std::uint64_t slot = 0;              // message_slot(), once it is posted
  Channel* channel = nullptr;          // the channel that it uses; null for a message to oneself
  bool staged = false;                 // `view` is a copy
  backend::PartsOps* parts = nullptr;  // of the channel, for a message of which parts move while others are copied
  std::uint64_t moved = 0;             // bytes moved, as last seen, for messages in parts
  Ticket ticket = {};
  bool posted = false;  // posted in the channel; messages to oneself never are
  bool done = false;
};

// A plan that runs.
struct PlanRun {
  exec::Executor executor = {};
  std::vector<std::size_t> received_counts = {};    // what the decision's exchange brings
  std::shared_ptr<const Plan> plan_of_counts = {};  // what the exchange leads to, once it has ended
  std::vector<exec::Executed> executed = {};        // used if it is traced
  std::unique_ptr<std::byte[]> scaled = {};         // the multiplied input of a premul_sum; kept for the next one
  std::size_t scaled_bytes = 0;
  std::vector<std::byte> apart = {};  // where it works instead of the output, if others may map that
};

// The group keeps it while it is in flight, its Works keep it, and a pool keeps it for reuse.
class Pending : public Prepared {
 public:
  // ---- One start. The code that starts it sets this.
  std::string_view name = "";  // "allreduce"
  std::uint64_t sequence = 0;
  Duration timeout = {};
  Duration spent = {};      // of the timeout, by COL_CHECK=strict, before the wait of a call that blocks
  std::uint64_t began = 0;  // ticks; 0: nobody wants a timeline
  bool started = false;     // the rank waits for it later
  bool collective = true;
  // When its first wait began, or, of a long one, when it was called; 0: it is short, and has not waited.
  std::uint64_t began_ns = 0;
  // Its entry in the flight recorder, while nothing else tells of it, as it does not wait: one that runs, or, of one
  // that is waited for later, that of its start. Others have one when they have ended.
  std::optional<std::uint64_t> entry = {};
  std::vector<Leg> legs = {};
  std::vector<std::shared_ptr<Pending>> parts = {};  // of what ends when several others have: these
  std::atomic<bool> is_collected{false};             // a scope that has not ended will start it; any thread may ask

  // ---- Its progress.
  enum class Phase : std::uint8_t { fetching, running, returning };
  Phase phase = Phase::running;
  std::unique_ptr<Staging> staging = {};  // null if no buffer is copied
  PlanRun run = {};
  std::optional<Ticket> ticket = {};  // of a started native collective, until it has ended
  // Of a call in a graph, which has ended for the host as soon as it is there: for its Work, so that it goes with that.
  // Shared with the channel.
  std::shared_ptr<const DeviceEnd> in_graph = {};
  std::exception_ptr copy_failure = {};  // of a message that is sent while it is copied
  std::optional<Error> error = {};
  int source = -1;                    // of a receive that has ended
  std::unique_ptr<Watch> watch = {};  // set once it has been tested, or left to others, before its end

  // Any thread may ask. Once it has ended, `error` and `source` stay as they are, and any thread may read them.
  // acquire pairs with end().
  bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  void end() noexcept { ended_.store(true, std::memory_order_release); }
  void begin_again() noexcept {
    spent = {};
    watch.reset();
    ended_.store(false, std::memory_order_relaxed);
  }

  // Whether it still runs the exchange of its decision.
  bool exchanges_counts() const noexcept { return decision->exchange != nullptr && run.plan_of_counts == nullptr; }

  void reset();
  // Whether it can stand for a call of later that is the same.
  bool may_come_again() const {
    return request.op.kind() == Op::Kind::builtin && !staging && in_counts.empty() && out_counts.empty();
  }
  // Whether it reads or writes a part of the memory.
  bool uses(ConstTensorView memory) const;
  // The operations in words, in the form in which ranks compare them: those that have not ended, or all.
  std::vector<Operation> describe(int rank, int size) const;
  // What it moves, for the control page; of several messages, the first that has not ended. `peers`: those of the
  // group.
  Collective kind() const;
  CallDetails details(const std::vector<PeerInfo>& peers) const;
  // Both must not outlive it.
  Diagnosis diagnose(Surroundings& surroundings) const;
  Watch& watch_in(Surroundings& surroundings);

 private:
  std::atomic<bool> ended_{true};
};

using PendingPtr = std::shared_ptr<Pending>;  // shared by the group, its Works and its pool

Operation describe_message(const Leg& leg, int rank, int size);

// Messages between two ranks have equal slots exactly if they match.
std::uint64_t message_slot(std::uint64_t group_token, const Leg& leg);

}  // namespace col::group
