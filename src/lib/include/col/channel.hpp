// The backend interface: a backend moves bytes between the ranks of one group. This file is for people who add a
// backend. Programs that use col do not need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/error.hpp>
#include <col/export.hpp>
#include <col/job.hpp>
#include <col/request.hpp>
#include <col/types.hpp>

namespace col {

// A slot names a message: a send and a receive pair only if their slots are equal. It has two halves of 32 bits. The
// lower half describes the content of the message. The upper half names the stream of messages that it belongs to.
//
// A channel may accept messages before their receive is posted. Such a channel takes the oldest message of a stream
// from the peer (for kAnyPeer, from any peer), and the oldest receive that waits in that stream. If the two differ in
// the lower half or in length, it throws mismatch: they can never pair, and the sender may have ended long ago.
inline constexpr std::uint64_t kSlotContent = 0xffff'ffff;

// As the peer of a receive: any peer, the one that sends first.
inline constexpr int kAnyPeer = -1;

// An operation that has been started: a message or a native collective. It is a plain number. It is valid until test()
// has returned a peer, or wait() has returned or thrown.
struct Ticket {
  std::uint64_t id = 0;
};
// start_native() returns it for a collective that has ended already. Do not pass it to test() or wait().
inline constexpr Ticket kEnded{~std::uint64_t{0}};

class DeviceMemory;
class DeviceOps;
namespace backend {
class AllocationOps;
class CommonMemoryOps;
class DraftOps;
class HoldingOps;
class HostWatchOps;
class ImmediateOps;
class NearOps;
class PartsOps;
class PrepareOps;
class ReasonOps;
class WireOps;
}  // namespace backend

// The abilities of a channel beyond the functions of Channel. Each pointer leads to a part of the channel, which lives
// as long as the channel; null if it has no such part. The rules of Channel hold for all of them.
struct Capabilities {
  DeviceOps* device = nullptr;  // <col/device.hpp>: it moves the memory of a device, and not host memory
  // Only col's own backends have these, which headers of src/lib/backend declare. A program's backend leaves them null.
  backend::ImmediateOps* immediate = nullptr;         // small messages at once, without a Ticket
  backend::PrepareOps* prepares = nullptr;            // its part of a collective that comes again
  backend::PartsOps* parts = nullptr;                 // large messages that move in parts
  backend::AllocationOps* allocation = nullptr;       // memory that the collectives of other ranks reach
  backend::CommonMemoryOps* common_memory = nullptr;  // room for the channels of groups of some ranks
  backend::DraftOps* drafts = nullptr;                // new channels of some of its ranks, made without a store
  backend::HoldingOps* holding = nullptr;             // posted messages are held back until somebody waits
  backend::ReasonOps* reasons = nullptr;              // it chooses between ways within a native entry, and says why
  backend::NearOps* near = nullptr;                   // it can be the side of this host in a group over hosts
  backend::WireOps* wire = nullptr;                   // it can be the side of the other hosts
  backend::HostWatchOps* host_watch = nullptr;        // it finds out that a host is lost
};

// The connections of one rank to the other ranks of its group. One thread at a time may use it, except for abort(),
// which any thread may call. After a call has thrown, the channel is broken: every later call throws at once, and the
// group has to be created again.
class COL_EXPORT Channel {
 public:
  virtual ~Channel();

  // The further parts of the channel. They stay the same as long as it lives.
  const Capabilities& can() const noexcept { return can_; }

  // Starts to send `data` to group rank `peer`, or to receive it from there. A send and a receive pair only when both
  // name the same slot. Two posts with the same slot between the same ranks pair in the order of posting. The memory
  // must stay valid until the ticket is done. Posting never blocks for the peer. A message of zero elements is a
  // message like any other. A receive from kAnyPeer takes the first message of its slot, from any sender, that no
  // earlier receive has taken.
  virtual Ticket post_send(int peer, std::uint64_t slot, ConstTensorView data) = 0;
  virtual Ticket post_recv(int peer, std::uint64_t slot, TensorView data) = 0;
  // Returns the peer of the operation when it has ended (for a collective, this rank), and frees the ticket. Returns
  // nothing before. Throws what wait() would throw. Also moves on everything else that this rank has posted.
  virtual std::optional<int> test(Ticket ticket) = 0;
  // Waits until the operation has ended, frees the ticket, and returns the peer. While it waits, it also moves on
  // everything else that this rank has posted. Throws the errors of wait.check(), peer_lost, io.
  virtual int wait(Ticket ticket, WaitContext& wait) = 0;

  // The collectives that the channel implements itself. They stay the same as long as the channel lives.
  virtual std::span<const NativeEntry> native_entries() const = 0;
  // Starts one of native_entries(). Errors as wait(). An entry that is not `asynchronous` runs to its end here; the
  // result is kEnded. For the others, memory and counts must stay valid until the ticket is done. Before that, the rank
  // may start more of them; all ranks do so in the same order. Even a start may need the peers, and `wait` bounds the
  // time that it takes. Once the channel is broken, the memory of a call that has not ended may still be written, until
  // test() of its ticket has thrown.
  virtual Ticket start_native(const Request& request, WaitContext& wait) = 0;
  // Runs one of native_entries() to its end: start_native() and wait(), or what is faster.
  virtual void native(const Request& request, WaitContext& wait);

  // Breaks the channel: ends every wait in it, here and, as far as the transport can tell the peers, on the peers too.
  // Idempotent.
  virtual void abort(const Error& cause) noexcept = 0;

 protected:
  explicit Channel(const Capabilities& can = {}) noexcept : can_(can) {}

 private:
  const Capabilities can_;
};

class COL_EXPORT BackendFactory {
 public:
  virtual ~BackendFactory();
  virtual std::string_view name() const = 0;
  // The reason why the backend cannot be used on this machine, in words; nothing if it can.
  virtual std::optional<std::string> unavailable_reason() const = 0;
  // The kind of memory that its channels move. The default is host memory. Plans run only on host memory: a channel for
  // another kind runs only its native entries.
  virtual Device::Type device() const;
  // The devices of this host. They may exist even if the backend cannot be used. Throws unavailable and says why if
  // there are none, which is the default. The object lives as long as the factory.
  virtual DeviceMemory& device_memory();
  // The reason why the backend cannot connect ranks that share one device; empty if it can, which is the default. Only
  // called if the backend can be used.
  virtual std::string why_alone() const;
  // A name of the device for this backend: two devices that the backend treats as one have equal names. The default is
  // the device's uuid.
  virtual std::string seat(int device);
  // Connects this rank to its peers. Blocking. It returns only after every peer has entered connect() too, because the
  // caller then removes from the store what the peers had to read. Throws the errors of wait.check(), peer_lost,
  // mismatch (a stranger answered instead of a peer), io, resource. On failure it leaves nothing open.
  virtual std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) = 0;
  // For COL_LOG=info, in words: the interface and the address that a group of `request` will use.
  virtual std::string describe(const ConnectRequest& request) const = 0;
};

// Adds a backend under its name(), for programs that bring their own. The name is then accepted wherever text names a
// backend. Throws already_initialized if the name is taken. Thread safe.
COL_EXPORT void register_backend(std::unique_ptr<BackendFactory> factory);
// The backend of that name; null if there is none. Thread safe. The object lives as long as the process.
COL_EXPORT BackendFactory* find_backend(std::string_view name);
COL_EXPORT std::vector<std::string> backend_names();

}  // namespace col
