// The parts of col's own channels beyond the functions of Channel, which Capabilities points to. The group layer asks
// for them once, when the group is made. The rules of Channel hold for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/channel.hpp>

#include "core/export/module_export.hpp"

namespace col::backend {

// For channels that can move a small message without starting an operation, and let what peers wait for go
// out before everything else.
class COL_MODULE_EXPORT ImmediateOps {
 public:
  virtual ~ImmediateOps() = default;
  // As post_send() and post_recv() of a message that ends at once. Both return false, and have done nothing, if it does
  // not: it is large, there is no room for it, it has not come after a moment, what has come is another message, or the
  // channel is broken. Then post it, which also says what is wrong. They do not move on anything else. Requires: no
  // operation of this rank is in flight in the channel, and `peer` is another rank of the group.
  virtual bool send_immediate(int peer, std::uint64_t slot, ConstTensorView data) noexcept = 0;
  virtual bool receive_immediate(int peer, std::uint64_t slot, TensorView data) noexcept = 0;
};

// The channel's part of a collective that comes again, with the same buffers: what it has decided about it. Once the
// channel is gone, it may only be destroyed.
class COL_MODULE_EXPORT PreparedNative {
 public:
  virtual ~PreparedNative() = default;
  // The first part of Channel::native(), for its request with another fingerprint. Waits for nobody. If it returns
  // true, end() or native() of the same request has to be called next. If it returns false, it has done nothing.
  // Requires: no operation of this rank is in flight in the channel.
  virtual bool begin() noexcept = 0;
  // The second part, as far as peers are there in a moment. If it returns false, native() of the same request has to be
  // called next, and says what is wrong. Of a call that has not begun, it does nothing and returns false.
  virtual bool end() noexcept = 0;
  // As Channel::start_native() of its request.
  virtual Ticket start() = 0;
};

// For channels that can prepare native entries.
class COL_MODULE_EXPORT PrepareOps {
 public:
  virtual ~PrepareOps() = default;
  // Null if there is nothing that could be prepared. Requires: the request stays in its place, with all that it refers
  // to, as long as the prepared part is used; of it, only the fingerprint changes.
  virtual std::unique_ptr<PreparedNative> prepare(const Request& request) = 0;
};

// For channels that move large messages in parts. Both ends can then work with the first parts while the
// rest still moves.
class COL_MODULE_EXPORT PartsOps {
 public:
  virtual ~PartsOps() = default;
  // As post_send(), for memory that is still being filled, from its first byte to its last. `filled` returns how many
  // bytes are there. Every call on the channel calls `filled` until it has returned the whole length. It must not
  // throw. Use test() for such a message: wait() may sleep while the memory is filled.
  virtual Ticket post_filling_send(int peer, std::uint64_t slot, ConstTensorView data,
                                   std::function<std::uint64_t()> filled) = 0;
  // How many bytes of a large message have moved so far, from the first byte on. Requires: the ticket is valid.
  virtual std::uint64_t moved(Ticket ticket) = 0;
};

// Memory of this rank, of the kind that the channel moves, which the collectives of this channel can reach from other
// ranks.
class COL_MODULE_EXPORT AllocationOps {
 public:
  virtual ~AllocationOps() = default;
  // Takes what this rank says; returns what all say, by rank.
  using Exchange = std::function<std::vector<std::string>(const std::string& words)>;
  static constexpr std::size_t kMostWords = 1000;  // the largest size of `words`, in bytes
  // Allocates such memory, zeroed. It is freed when the last pointer to it is gone, which may be after the end of the
  // channel. All ranks call this with the same `bytes`. Returns null on all ranks if they cannot share memory. Throws
  // resource on all ranks if one rank has no room, which does not break the channel; what `exchange` throws; and errors
  // as wait().
  virtual std::shared_ptr<void> allocate(std::size_t bytes, const Exchange& exchange, WaitContext& wait) = 0;
};

// For channels whose ranks have memory in common.
//
// The memory may have room for the channels of groups of some of the ranks: these need no store and no connections of
// their own. They do not end with the channel that they were made from.
class COL_MODULE_EXPORT CommonMemoryOps {
 public:
  virtual ~CommonMemoryOps() = default;
  // True if this rank can reach that memory.
  virtual bool has_pool() const = 0;
  // Makes the channel of a new group, on its rank 0. Returns nothing if there is no room. The other ranks of the group
  // get theirs by its place, each of them once. Neither function blocks. They read group, rank, size and token of the
  // request; `rank` is that in the new group. They throw resource.
  struct Reserved {
    std::uint64_t place = 0;
    std::unique_ptr<Channel> channel;
  };
  virtual std::optional<Reserved> reserve(const ConnectRequest& request) = 0;
  virtual std::unique_ptr<Channel> open(std::uint64_t place, const ConnectRequest& request) = 0;

  // Leaves up to kLongestFarewell bytes for the other ranks, which they can read when this rank has closed its channel:
  // the last thing that it does. Returns how many ranks have done so by now. Nothing, on all ranks, if there is no
  // place.
  static constexpr std::size_t kLongestFarewell = 2000;
  virtual std::optional<int> post_farewell(std::string_view words) = 0;
  // The words that rank has left; nothing if it has not.
  virtual std::optional<std::string> farewell_of(int rank) const = 0;
};

// One rank's part of a channel that its ranks make without a store, because another channel connects them already: each
// rank begins its part and says in a few words how it is reached, and with the words of all ranks it connects. The
// channel from which it was begun may go before it has ended.
class COL_MODULE_EXPORT Draft {
 public:
  virtual ~Draft() = default;

  // The words that the others have to hear: not empty.
  static constexpr std::size_t kMostWords = 63;
  virtual std::string words() const = 0;
  // Takes the words of all ranks of the new group, in rank order. Does not block. Requires: the channel from which it
  // was begun is still there.
  virtual void hear(std::span<const std::string> words) = 0;
  // As BackendFactory::connect(), once. All ranks have come already, and none looks into the store, if all goes well.
  virtual std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) = 0;
};

// For channels which can begin those of groups of some of their ranks.
class COL_MODULE_EXPORT DraftOps {
 public:
  virtual ~DraftOps() = default;
  // True if this rank can take part in it. All ranks of a group must.
  virtual bool can_draft() const = 0;
  // Begins this rank's part. Reads what the request says of the ranks; `ranks` are their numbers in this group. Does
  // not block. Null, or an Error: the ranks have to meet in the store, where this one can say what is wrong.
  virtual std::unique_ptr<Draft> draft(const ConnectRequest& request, std::span<const int> ranks) = 0;
};

// For channels that hold posted messages back until somebody waits: test() and wait() start what has been posted.
class COL_MODULE_EXPORT HoldingOps {
 public:
  virtual ~HoldingOps() = default;
  // As Channel::test(), but what is held back stays so, except for what hand_over() has said: nothing for such a
  // message.
  virtual std::optional<int> look(Ticket ticket) = 0;
  // All that has been posted by now begins together, in the next look() that finds the library idle. What is posted
  // later stays back.
  virtual void hand_over() = 0;
  // True if what is held back cannot begin before a capture of a stream ends, which may be the calling thread's own.
  virtual bool awaits_capture() const { return false; }
};

// For channels that choose, within a native entry, between ways that give the same bits.
class COL_MODULE_EXPORT ReasonOps {
 public:
  virtual ~ReasonOps() = default;
  // The way that start_native() would take, and why, for Group::explain(). The buffers of `request` need not exist.
  // Thread safe.
  virtual std::string how(const Request& request) const = 0;
};

// For channels that can be one side of another channel (backend hosts): shared memory to the ranks of this
// host, or a wire to those of others.
class COL_MODULE_EXPORT SideOps {
 public:
  virtual ~SideOps() = default;
  // Moves on everything that this rank has posted. Throws what test() would throw.
  virtual void progress() = 0;
  // Looks for a message to this rank that no posted receive takes, and that a receive of `slot` and `bytes` would take
  // if it was posted now. `peers`: the ranks that may send one, in their order.
  struct Probed {
    int peer = -1;          // the sender of the oldest such message; -1: there is none
    bool all_left = false;  // there is none, and none will come: all of `peers` have left in good order
  };
  // Also moves on what was posted. Throws what test() of a receive from any of `peers` would throw; mismatch only if
  // the channel can tell so early.
  virtual Probed probe(std::span<const int> peers, std::uint64_t slot, std::size_t bytes) = 0;
};

// For the ranks of one host: how a rank waits for both sides at once.
class COL_MODULE_EXPORT NearOps : public SideOps {
 public:
  ~NearOps() override = default;
  struct Awaited {
    // True if it is there; moves on whatever can bring it. Ends the wait by throwing.
    std::function<bool()> look;
    // Says in the context what the wait is for, once it lasts.
    std::function<void(WaitContext& wait)> tell;
    // It can only come over the other side, which takes longer than polling is worth.
    bool from_far = false;
    // Asked before every sleep, once what others do ends it: whether this rank may sleep now. Empty: always.
    std::function<bool()> may_sleep = {};
  };
  // Waits until look() returns true: polls, gives way, sleeps. What the ranks of this host do for this one, abort() and
  // ring() end its sleep at once. Throws what `look` and wait.check() throw.
  virtual void wait_until(const Awaited& awaited, WaitContext& wait) = 0;
  // Has this rank look again, if it sleeps in wait_until(). Any thread may call it, as long as the channel lives.
  virtual void ring() noexcept = 0;
};

// For the ranks of other hosts.
class COL_MODULE_EXPORT WireOps : public SideOps {
 public:
  ~WireOps() override = default;
  // From now on, the channel calls `ring` after everything that may end an operation of this rank, or bring a message
  // for probe(), unless a call of this rank has done it: at least once after each may_sleep(). From any thread, maybe
  // with locks of the channel held: `ring` must not call the channel, block or throw. An empty function ends this: once
  // on_change() has returned, the former one is not running any more.
  virtual void on_change(std::function<void()> ring) = 0;
  // The rank is about to sleep until `ring` is called. Returns whether it may: false if there may be something to do
  // already. Throws what progress() throws.
  virtual bool may_sleep() = 0;
  // True if messages move on while this rank makes no call. Otherwise its looks bring them, and are worth some time.
  virtual bool moves_by_itself() const noexcept = 0;
};

// For channels that find out that a host is lost, though nothing ends there: it is cut off, or its processes stand
// still.
class COL_MODULE_EXPORT HostWatchOps {
 public:
  virtual ~HostWatchOps() = default;
  // Why a host of the group is lost: an Error. Null: none is known to be. Any thread may call it.
  virtual std::exception_ptr lost_host() = 0;
};

}  // namespace col::backend
