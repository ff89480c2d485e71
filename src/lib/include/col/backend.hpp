// The backend interface: what moves bytes between the ranks of one group. For extenders; users never see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/error.hpp>
#include <col/export.hpp>
#include <col/job.hpp>
#include <col/store.hpp>
#include <col/types.hpp>

namespace col {

// One rank's part in one collective, with arguments that the group layer has checked: counts fit, dtypes agree, the
// device is one the backend takes, `in` and `out` are the same memory or do not overlap.
//
// Buffers by collective (n = group size):
//   allreduce, reduce     in, out of equal count (out is empty on a non-root of reduce)
//   scan, exscan          in, out of equal count
//   broadcast             out, on every rank: read on the root, written elsewhere
//   allgather(v)          out.count = n * in.count, or the sum of out_counts; block r comes from rank r
//   gather(v)             out as for allgather(v) on the root, empty elsewhere
//   reduce_scatter(v)     in.count = n * out.count, or the sum of in_counts; rank r gets the reduced block r
//   scatter(v)            in.count = n * out.count, or the sum of in_counts, on the root; empty elsewhere
//   alltoall(v)           n equal blocks in both, or in_counts and out_counts
//   barrier               no buffer
struct Request {
  Collective collective = Collective::barrier;
  ConstTensorView in = {};
  TensorView out = {};
  std::span<const std::size_t> in_counts = {};  // v-forms: elements per rank, in rank order
  std::span<const std::size_t> out_counts = {};
  Op op = {};
  int root = 0;
  // Hash of (group, sequence, collective, dtype, reduce op, root, count), and of all calls of the group before. Calls
  // that do not match never share it, so a backend that keys its messages by it can never pair them.
  std::uint64_t fingerprint = 0;
  Stream stream = {};
  // For native(): the name of one of native_entries(); empty: the backend chooses among those of `collective`.
  std::string_view algorithm = {};
};

// A collective that a backend does in its own way, and what it keeps of the numerics of our plans.
struct NativeEntry {
  Collective collective;
  std::string_view name;         // the algorithm, as selection and reports call it
  bool rounds_per_hop = false;   // 16-bit floats are rounded at every hop, not once
  bool drops_nan = false;        // min and max may lose a NaN
  bool rank_order = false;       // combines the inputs in the order of the ranks: serves what does not commute
  bool arithmetic_only = false;  // takes sum, product, min, max, avg and scaled sums; no bitwise operator, no function
  bool built_in_only = false;    // takes no function of the user's
  bool asynchronous = false;     // start_native() takes it, too
};

// The lower half of a slot says what a message is, the upper half which stream of messages between its two ranks it is
// part of. A channel that accepts messages before their receive is posted throws `mismatch` when the oldest message of
// a stream from the peer (or, for kAnyPeer, from a peer) differs in this half, or in length, from the oldest receive
// that waits in that stream: they can never pair, and the sender may be long gone.
inline constexpr std::uint64_t kSlotContent = 0xffff'ffff;

// Stands for "whichever peer sends first" where a receive names its peer.
inline constexpr int kAnyPeer = -1;

// An operation that has been started: a message, or a native collective. A plain number: valid until test() returned a
// peer, or wait() returned or threw.
struct Ticket {
  std::uint64_t id = 0;
};

// One rank's part in a call that passes a tensor for each of several GPUs (allreduce_multigpu and its like), with
// arguments that the group layer has checked: counts and dtypes agree, the devices differ, no two buffers overlap but
// in place. With k GPUs on each of n ranks, GPU i of rank r has the flat rank r * k + i, and there are n * k flat
// ranks.
//
// Buffers by collective, for each of `devices` in turn:
//   allreduce, reduce, broadcast   in and out are the same memory
//   allgather                      one of `in`; of `out` one that holds n * k blocks, or n * k of one block each
//   reduce_scatter                 one of `out`; of `in` one that holds n * k blocks, or n * k of one block each
//   send, recv                     there is one device, which has one of `in`, or of `out`
struct MultiRequest {
  Collective collective = Collective::allreduce;
  std::string_view call = {};         // "allreduce_multigpu": what errors are about
  std::span<const int> devices = {};  // this rank's GPUs, as its process numbers them
  std::size_t count = 0;              // elements of a block; of the whole tensor where there are no blocks
  DType dtype = DType::uint8;
  std::span<const ConstTensorView> in = {};
  std::span<const TensorView> out = {};
  Op op = {};
  int root = 0;   // a flat rank
  int peer = -1;  // send, recv: the other rank, and its GPU as its process numbers it
  int peer_device = 0;
};

// What runs such calls: a part of a channel, which ends with it, and which its abort() breaks too. For the thread that
// uses the channel.
class COL_EXPORT MultiChannel {
 public:
  virtual ~MultiChannel();
  // Throws invalid_argument or unavailable, and breaks nothing, when it cannot take what is asked: a device that there
  // is not, memory that is elsewhere, an operator.
  virtual void check(const MultiRequest& request) const = 0;
  // GPUs are connected when a call first names them, in their order. The number of the connections that a collective
  // with these would use, from 1 in the order of making: the same on all ranks, or their calls do not match.
  virtual std::uint64_t connections(std::span<const int> devices) const = 0;
  // Runs the call to its end. Errors as Channel::wait(); mismatch when the ranks differ in how many GPUs they have.
  virtual void run(const MultiRequest& request, WaitContext& wait) = 0;
};

// The connections of one rank to the others of its group.
//
// Used by one thread at a time, abort() excepted, which any thread may call. After any call has thrown (but for want of
// room in allocate()), the channel is broken: every later call throws at once, and the group has to be created anew.
class COL_EXPORT Channel {
 public:
  virtual ~Channel();

  // Starts to send `data` to, or to receive it from, group rank `peer`. A send and a receive pair only when both name
  // the same slot; two posts with one slot between the same ranks pair in the order of posting. The memory must stay
  // valid until the ticket is done. Never blocks for the peer. A message of zero elements is a message like any other.
  // A receive from kAnyPeer takes the first message of its slot, whoever sent it, that no earlier receive has taken.
  virtual Ticket post_send(int peer, std::uint64_t slot, ConstTensorView data) = 0;
  virtual Ticket post_recv(int peer, std::uint64_t slot, TensorView data) = 0;
  // Whether large messages are moved part by part, which lets both ends of them do something with the parts meanwhile.
  // If not, which it is unless overridden, the two functions below throw internal.
  virtual bool moves_in_parts() const;
  // As post_send(), of memory that is still being filled, from its first byte to its last: `filled` says how many bytes
  // are there. It is called by whatever else is called on the channel until it has said all of them, and must not
  // throw. Who waits for such a message should test() it: a wait() may sleep while the memory is filled.
  virtual Ticket post_filling_send(int peer, std::uint64_t slot, ConstTensorView data,
                                   std::function<std::uint64_t()> filled);
  // How many bytes of a large message have been moved so far, from the first one. Requires: the ticket is valid.
  virtual std::uint64_t moved(Ticket ticket);
  // The peer with whom the operation has been done (of a collective, this rank), which frees the ticket; nothing while
  // it has not ended. Throws what wait() would throw. Moves on whatever else this rank has posted, too.
  virtual std::optional<int> test(Ticket ticket) = 0;
  // Waits until the operation has ended, frees the ticket, and returns the peer. Meanwhile moves on whatever else this
  // rank has posted. Throws what wait.check() throws, peer_lost, io.
  virtual int wait(Ticket ticket, WaitContext& wait) = 0;

  // Whose memory it moves. Host memory unless overridden.
  virtual Device device() const;
  // Throws invalid_argument or unavailable, and breaks nothing, when the channel cannot take what is asked: memory of
  // another device, say. Asked before a call is counted (messages as send and recv, with `in` alone; `algorithm` is
  // empty where a plan runs), so that what is called next need not look again. Takes everything unless overridden.
  virtual void check(const Request& request) const;

  // Whether what is put in the stream is noted down for a graph, and does not run now. Throws io. Never, unless
  // overridden.
  virtual bool is_captured(Stream stream) const;

  // What is posted from now on comes after what the stream holds by now. Throws unavailable, and breaks nothing, when
  // the stream is captured; io. For channels that move memory of GPUs; others do nothing.
  virtual void post_after(Stream stream);

  // The collectives that native() takes; constant over the channel's life.
  virtual std::span<const NativeEntry> native_entries() const = 0;
  // Runs one of them to its end. Blocking; errors as wait().
  virtual void native(const Request& request, WaitContext& wait) = 0;
  // Starts one that is `asynchronous`, and returns: its memory must stay valid until the ticket is done. More may be
  // started, and native() called, before it has ended; all ranks do so in the same order. `wait` bounds how long the
  // start takes, for which the peers may be needed. Errors as wait(); throws internal unless overridden.
  virtual Ticket start_native(const Request& request, WaitContext& wait);

  // Memory of this rank that the collectives of this channel can reach from the other ranks, on its device(); zeroed,
  // and it goes back when the last pointer to it is gone, which may be after the channel's end. Called by all ranks,
  // with the same `bytes`. Null on all ranks when the channel can share none, which is what it does unless overridden.
  // Throws resource on all ranks when there is no room on one, which does not break the channel, what `exchange`
  // throws, and errors as wait().
  using Exchange = std::function<std::vector<std::string>(const std::string& words)>;  // what all ranks say, by rank
  static constexpr std::size_t kMostWords = 1000;                                      // bytes of them
  virtual std::shared_ptr<void> allocate(std::size_t bytes, const Exchange& exchange, WaitContext& wait);

  // Null when it has no calls over several GPUs, as unless overridden. Lives as long as the channel.
  virtual MultiChannel* multi();

  // Breaks the channel: ends every wait in it, here and, as far as the transport can tell them, on the peers.
  // Idempotent.
  virtual void abort(const Error& cause) noexcept = 0;
};

// A copy that has been started. Destroyed before it is done, it goes on: its memory must stay valid nevertheless.
class COL_EXPORT DeviceCopy {
 public:
  virtual ~DeviceCopy();
  // Whether it has ended. Does not block. Throws io when the device has failed.
  virtual bool done() = 0;
};

// Measures how long a device takes for what a stream is given, on the device's own clock. For one thread at a time.
class COL_EXPORT DeviceTimer {
 public:
  virtual ~DeviceTimer();
  // The stream that is measured, for Options::stream: one of the timer's own, which does not order with the default
  // stream and ends with the timer.
  virtual Stream stream() const = 0;
  // Mark in the stream where the measured work begins, and where it ends. Do not block. Throw io.
  virtual void start() = 0;
  virtual void stop() = 0;
  // Seconds from the last start() to the last stop(); nothing while the device has not reached that stop. Does not
  // block. Requires: both have been called. Throws io.
  virtual std::optional<double> seconds() = 0;
};

// In what two buffers differ.
struct Difference {
  std::size_t count = 0;  // elements
  std::size_t first = 0;  // the index of the first one, when there are any
};

// A comparison that has been started. Destroyed before it is done, it goes on: its memory must stay valid nevertheless.
class COL_EXPORT DeviceComparison {
 public:
  virtual ~DeviceComparison();
  // What it has found; nothing while it has not ended. Does not block. Throws io when the device has failed.
  virtual std::optional<Difference> result() = 0;
};

// The memory of this host's devices, and copies between it and the host's: what calls are made of whose buffers are in
// another kind of memory than their group moves. Thread safe.
class COL_EXPORT DeviceMemory {
 public:
  virtual ~DeviceMemory();
  // How many devices this process sees, at least 1. Functions below that take one throw invalid_argument for another,
  // and unavailable or io when it does not start.
  virtual int devices() const = 0;
  // That which the calling thread has made current, as by cudaSetDevice(); nothing when it has made none.
  virtual std::optional<int> current() const = 0;
  // Makes the device the current one of the calling thread until the pointer is gone, which has to be in that thread;
  // then the one before. So a program without a CUDA runtime says which device a group that it makes is on.
  virtual std::shared_ptr<void> make_current(int device) = 0;
  // What it is: "NVIDIA H200".
  virtual std::string name(int device) = 0;
  // Which one it is: "0000:1b:00.0". Tells those of a host apart, whatever the processes call them.
  virtual std::string bus(int device) = 0;
  // The device that a buffer is on, by its first byte and its last; nothing for host memory, and where it ends before
  // `bytes`. `device`: where it should be.
  virtual std::optional<int> device_of(const void* memory, std::size_t bytes, int device) = 0;
  // Memory of the device, or of the host where devices copy to and from it at their full speed. Not zeroed; it goes
  // back with the last pointer, which may wait for the device. Throws resource.
  virtual std::shared_ptr<void> allocate(int device, std::size_t bytes) = 0;
  virtual std::shared_ptr<void> allocate_host(int device, std::size_t bytes) = 0;
  // Whether what the stream of the device is given becomes part of a graph, and does not run.
  virtual bool is_captured(int device, Stream stream) = 0;
  // Starts to copy between memory of the device and the host's, whichever way, or within either: after what `stream` of
  // the device holds, and before what it is given next; for the null stream, after what the device's default stream has
  // been given so far. Blocks where host memory does not come from allocate_host(), for as long as that takes.
  // Requires: the stream is not being captured.
  virtual std::unique_ptr<DeviceCopy> copy(void* to, const void* from, std::size_t bytes, int device,
                                           Stream stream) = 0;
  // Starts to compare `count` elements of 1, 2, 4 or 8 bytes, bit by bit: a NaN equals one of the same bits, and -0 is
  // not 0. Both are memory of the device, at whatever address; ordered as copy() is. Null where col's kernels are not
  // there (a build without nvcc) or cannot be loaded: compare on the host then. Requires: the stream is not being
  // captured.
  virtual std::unique_ptr<DeviceComparison> compare(const void* left, const void* right, std::size_t count,
                                                    std::size_t element_bytes, int device, Stream stream) = 0;
  virtual std::unique_ptr<DeviceTimer> make_timer(int device) = 0;
  // Bytes of the cache that all of the device shares: buffers that together are larger are not found there again.
  virtual std::size_t cache_bytes(int device) = 0;
  // Waits until all that this process has put on the device has ended, in whatever stream. Throws unavailable when the
  // driver cannot tell, what wait.check() throws, io.
  virtual void synchronize(int device, WaitContext& wait) = 0;
};

// What a rank tells the others about itself when a group is made.
struct PeerInfo {
  int rank = 0;         // in the group
  int global_rank = 0;  // in the job
  std::int64_t pid = 0;
  std::string hostname;
  std::string boot_id;  // equal boot id and network namespace: loopback works
  std::string network_namespace;
};

// A device that a rank wants to use, as it tells the others.
struct Seat {
  int rank = 0;
  std::string device = {};     // equal where the device is the same: its bus, and the boot id of the host
  std::string why_alone = {};  // why the rank cannot use it together with another one; empty: it can
};
// Two ranks on one device.
struct SharedDevice {
  int first = 0, second = 0;
  std::string device = {};
  std::string problem = {};  // why some rank cannot share: "on rank 2, …"; empty when all can
};
// The first two of `seats` that are on one device; nothing when each has its own. The same on all ranks that know the
// same seats.
COL_EXPORT std::optional<SharedDevice> find_shared_device(std::span<const Seat> seats);

struct ConnectRequest {
  std::string_view group;
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;     // private to this group: any key may be used; shared, as adapters keep it
  std::span<const PeerInfo> peers;  // in rank order, this rank included
  bool same_host = true;            // every peer is reachable over loopback
  std::uint64_t token = 0;          // equal on all ranks of this group and on no others: proves who connected
  std::string socket_ifname;        // COL_SOCKET_IFNAME: a name or a comma-separated list; empty: choose
  // For backends of devices: the streams that the channel makes get the highest priority there is.
  bool is_high_priority_stream = false;
};

class COL_EXPORT BackendFactory {
 public:
  virtual ~BackendFactory();
  virtual std::string_view name() const = 0;
  // Why it cannot be used on this machine, in words; nothing when it can.
  virtual std::optional<std::string> unavailable_reason() const = 0;
  // What kind of memory its channels move. Host memory unless overridden; plans run there alone, so that a channel for
  // another kind runs its native entries only.
  virtual Device::Type device() const;
  // The devices of this host, which may be there where the backend cannot be used. Throws unavailable and says why when
  // there are none, as it does unless overridden. The object lives as long as the factory.
  virtual DeviceMemory& device_memory();
  // Why it cannot connect ranks that use one device; empty when it can, as unless overridden. Asked where it can be
  // used.
  virtual std::string why_alone() const;
  // Connects this rank to its peers. Blocking; returns only after every peer has entered connect() too, since the
  // caller then takes back what they had to read. Throws what wait.check() throws, peer_lost, mismatch (a stranger
  // answered instead of a peer), io, resource. On failure nothing is left open.
  virtual std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) = 0;
  // In words, for COL_LOG=info: interface and address a group of `request` will use.
  virtual std::string describe(const ConnectRequest& request) const = 0;
};

// What the library of a backend that is loaded on first use (libcol_nccl.so) exports, as a C function without
// parameters whose name is kModuleEntry. Such a library links libcol.so and uses its public headers only; exceptions
// cross between the two.
struct BackendModule {
  // The value of an environment variable of libcol's table; nothing when it is unset or empty. Throws internal for a
  // name that is in no table.
  using Environment = std::function<std::optional<std::string>(std::string_view name)>;

  std::string_view build_id;  // names these headers and the compiler: the same in libcol, or the module is refused
  std::unique_ptr<BackendFactory> (*make_factory)(Environment environment);
};
inline constexpr const char* kModuleEntry = "col_backend_entry";
using ModuleEntry = const BackendModule*();

// Adds a backend under its name(), for programs that bring their own; the name is then accepted wherever a backend is
// named by text. Throws already_initialized when the name is taken. Thread safe.
COL_EXPORT void register_backend(std::unique_ptr<BackendFactory> factory);
// The backend of that name, null when there is none. Thread safe; the object lives as long as the process.
COL_EXPORT BackendFactory* find_backend(std::string_view name);
COL_EXPORT std::vector<std::string> backend_names();

}  // namespace col
