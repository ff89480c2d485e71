// The backend interface: a backend moves bytes between the ranks of one group. This file is for those who add a
// backend. Programs that use col do not need it.
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

// One rank's part in one collective. The group layer has checked the arguments: counts fit, dtypes agree, the backend
// takes the device, and `in` and `out` are either the same memory or do not overlap.
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
  bool is_captured = false;  // `stream` is being captured, as DeviceExtension::is_captured() has said for this call
  // Hash of (group, sequence, collective, dtype, reduce op, root, count) and of all earlier calls of the group. Two
  // calls that do not match never have the same fingerprint. So a backend that uses it as the key of its messages can
  // never pair them.
  std::uint64_t fingerprint = 0;
  Stream stream = {};
  // For native entries: the name of one of them. Empty: the backend chooses one that serves `collective`.
  std::string_view algorithm = {};
};

// A collective that a backend does by its own implementation, and how its numerics differ from those of col's plans.
struct NativeEntry {
  Collective collective;
  std::string_view name;        // the name of the algorithm in selection and reports
  bool rounds_per_hop = false;  // narrow floats are rounded at every hop, not once
  bool drops_nan = false;       // min and max may lose a NaN
  bool rank_order = false;      // combines the inputs in rank order, so it serves operators that do not commute
  // takes sum, product, min, max, avg and scaled sums; no bitwise operator and no function
  bool arithmetic_only = false;
  bool built_in_only = false;  // takes no function of the user
  bool asynchronous = false;   // start_native() returns before it has ended
  // Of a reduction: whether it combines this type by this operator. Null: whatever is defined (see Op).
  bool (*reduces)(const Op& op, DType dtype) noexcept = nullptr;
};

// The slot of a message has two halves. The lower half says what the message is. The upper half names the stream of
// messages between its two ranks that it is part of.
//
// A channel that accepts messages before their receive is posted compares the lower halves. It takes the oldest message
// of a stream from the peer (for kAnyPeer, from any peer), and the oldest receive that waits in that stream. If they
// differ in the lower half or in length, it throws `mismatch`: the two can never pair, and the sender may have ended
// long ago.
inline constexpr std::uint64_t kSlotContent = 0xffff'ffff;

// As the peer of a receive: any peer, whichever sends first.
inline constexpr int kAnyPeer = -1;

// An operation that has been started: a message or a native collective. It is a plain number. It is valid until test()
// has returned a peer, or wait() has returned or thrown.
struct Ticket {
  std::uint64_t id = 0;
};
// What start_native() returns for a collective that has ended already. Not to be tested or waited for.
inline constexpr Ticket kEnded{~std::uint64_t{0}};

// One rank's part in a call that passes one tensor for each of several GPUs (allreduce_multigpu and the like). The
// group layer has checked the arguments: counts and dtypes agree, the devices differ, and no two buffers overlap except
// in place. With k GPUs on each of n ranks, GPU i of rank r has flat rank r * k + i. There are n * k flat ranks.
//
// Buffers by collective, for each of `devices` in turn:
//   allreduce, reduce, broadcast   one tensor in `in` and one in `out`: the same memory
//   allgather                      one tensor in `in`; in `out`, one tensor of n * k blocks, or n * k of one block each
//   reduce_scatter                 one tensor in `out`; in `in`, one tensor of n * k blocks, or n * k of one block each
//   send, recv                     there is one device, with one tensor in `in` (send) or in `out` (recv)
struct MultiRequest {
  Collective collective = Collective::allreduce;
  std::string_view call = {};         // "allreduce_multigpu": the name for error messages
  std::span<const int> devices = {};  // this rank's GPUs, with the numbers that its process gives them
  std::size_t count = 0;              // elements of a block, or of the whole tensor if there are no blocks
  DType dtype = DType::uint8;
  std::span<const ConstTensorView> in = {};
  std::span<const TensorView> out = {};
  Op op = {};
  int root = 0;   // a flat rank
  int peer = -1;  // send, recv: the other rank; peer_device is its GPU, with the number that its process gives it
  int peer_device = 0;
};

// Runs calls over several GPUs. It is part of a channel: it ends with the channel, and the channel's abort() breaks it
// too. Only the thread that uses the channel may use it.
class COL_EXPORT MultiChannel {
 public:
  virtual ~MultiChannel();
  // Throws invalid_argument or unavailable if it cannot take the request: the device does not exist, the memory is
  // elsewhere, or the operator is not supported. That breaks nothing.
  virtual void check(const MultiRequest& request) const = 0;
  // The number of the connections that a collective over `devices` would use. The first call that names a list of GPUs
  // connects them, in their order. Connections are numbered from 1 in the order of their making. The number is the same
  // on all ranks; otherwise their calls do not match.
  virtual std::uint64_t connections(std::span<const int> devices) const = 0;
  // Runs the call to its end. Errors as Channel::wait(); also mismatch when the ranks have different numbers of GPUs.
  virtual void run(const MultiRequest& request, WaitContext& wait) = 0;
};

// The connections of one rank to the other ranks of its group. What only some channels can do is an extension: a class
// below that the channel inherits too. The group layer looks for the extensions once, when the group is made.
//
// One thread at a time may use it, except for abort(), which any thread may call. After a call has thrown, the channel
// is broken: every later call throws at once, and the group has to be created again. The one exception is allocate()
// without enough room, which does not break the channel.
class COL_EXPORT Channel {
 public:
  virtual ~Channel();

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
  // everything else that this rank has posted. Throws what wait.check() throws, peer_lost, io.
  virtual int wait(Ticket ticket, WaitContext& wait) = 0;

  // The collectives that the channel does itself. They stay the same as long as the channel lives.
  virtual std::span<const NativeEntry> native_entries() const = 0;
  // Starts one of native_entries(). Errors as wait(). One that is not `asynchronous` runs to its end here: returns
  // kEnded. Of the others, the memory must stay valid until the ticket is done, and the counts, too. Before they have
  // ended, the rank may start more; all ranks do so in the same order. Even a start may need the peers, and `wait`
  // bounds the time that it takes. Once the channel is broken, the memory of a call that has not ended may still be
  // written, until test() of its ticket has thrown.
  virtual Ticket start_native(const Request& request, WaitContext& wait) = 0;
  // Runs one of native_entries() to its end: start_native() and wait(), or what is faster.
  virtual void native(const Request& request, WaitContext& wait) {
    const Ticket ticket = start_native(request, wait);
    if (ticket.id != kEnded.id) this->wait(ticket, wait);
  }

  // Takes what this rank says; returns what all say, by rank.
  using Exchange = std::function<std::vector<std::string>(const std::string& words)>;
  static constexpr std::size_t kMostWords = 1000;  // the largest size of `words`, in bytes
  // Allocates memory of this rank, of the kind that the channel moves, zeroed, which the collectives of this channel
  // can reach from other ranks. It is freed when the last pointer to it is gone, which may be after the end of the
  // channel. All ranks call this with the same `bytes`. Returns null on all ranks if the channel cannot share memory,
  // which is the default. Throws resource on all ranks if one rank has no room, which does not break the channel; what
  // `exchange` throws; and errors as wait().
  virtual std::shared_ptr<void> allocate(std::size_t bytes, const Exchange& exchange, WaitContext& wait);

  // Breaks the channel: ends every wait in it, here and, as far as the transport can tell the peers, on the peers too.
  // Idempotent.
  virtual void abort(const Error& cause) noexcept = 0;
};

// An extension for channels that can move a small message without starting an operation, and let what peers wait for go
// out before everything else.
class COL_EXPORT ImmediateExtension {
 public:
  virtual ~ImmediateExtension();
  // As post_send() and post_recv() of a message that ends at once. Both return false, and have done nothing, if it does
  // not: it is large, there is no room for it, it has not come after a moment, what has come is another message, or the
  // channel is broken. Then post it, which also says what is wrong. They do not move on anything else. Requires: no
  // operation of this rank is in flight in the channel, and `peer` is another rank of the group.
  virtual bool send_at_once(int peer, std::uint64_t slot, ConstTensorView data) noexcept = 0;
  virtual bool receive_at_once(int peer, std::uint64_t slot, TensorView data) noexcept = 0;
  // The first part of Channel::native(), for a request that it has run before, at the same place in memory and with
  // another fingerprint. Waits for nobody. If it returns true, end_at_once() or native() of the same request has to be
  // called next. If it returns false, it has done nothing. Requires: no operation of this rank is in flight in the
  // channel.
  virtual bool begin_at_once(const Request& request) noexcept = 0;
  // The second part, as far as peers are there in a moment. If it returns false, native() of the same request has to be
  // called next, and says what is wrong. Requires: begin_at_once() has returned true.
  virtual bool end_at_once(const Request& request) noexcept = 0;
};

// An extension for channels that move large messages in parts. Both ends can then work with the first parts while the
// rest still moves. The rules of Channel hold for it too.
class COL_EXPORT PartsExtension {
 public:
  virtual ~PartsExtension();
  // As post_send(), for memory that is still being filled, from its first byte to its last. `filled` returns how many
  // bytes are there. Every call on the channel calls `filled` until it has returned the whole length. It must not
  // throw. Use test() for such a message: wait() may sleep while the memory is filled.
  virtual Ticket post_filling_send(int peer, std::uint64_t slot, ConstTensorView data,
                                   std::function<std::uint64_t()> filled) = 0;
  // How many bytes of a large message have moved so far, from the first byte on. Requires: the ticket is valid.
  virtual std::uint64_t moved(Ticket ticket) = 0;
};

struct ConnectRequest;

// An extension for channels whose ranks have memory in common. The rules of Channel hold for it too.
//
// The memory may have room for the channels of groups of some of the ranks: these need no store and no connections of
// their own. They do not end with the channel that they were made from.
class COL_EXPORT CommonMemoryExtension {
 public:
  virtual ~CommonMemoryExtension();
  // Whether this rank can reach that memory.
  virtual bool has_nursery() const = 0;
  // Makes the channel of a new group, on its rank 0. Returns nothing if there is no room. The other ranks of the group
  // get theirs by its place, each of them once. Neither function blocks. They read group, rank, size and token of the
  // request; `rank` is that in the new group. They throw resource.
  struct Seedling {
    std::uint64_t place = 0;
    std::unique_ptr<Channel> channel;
  };
  virtual std::optional<Seedling> plant(const ConnectRequest& request) = 0;
  virtual std::unique_ptr<Channel> planted(std::uint64_t place, const ConnectRequest& request) = 0;

  // Leaves up to kMostWords bytes for the other ranks, which they can read when this rank has closed its channel: the
  // last thing that it does. Returns how many ranks have done so by now. Nothing, on all ranks, if there is no place.
  static constexpr std::size_t kMostWords = 2000;
  virtual std::optional<int> leave_words(std::string_view words) = 0;
  // What that rank has left; nothing if it has not.
  virtual std::optional<std::string> words_of(int rank) const = 0;
};

// An extension for channels that can be one side of another channel (backend hosts): shared memory to the ranks of this
// host, or a wire to those of others. The rules of Channel hold for it too.
class COL_EXPORT SideExtension {
 public:
  virtual ~SideExtension();
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
class COL_EXPORT NearExtension : public SideExtension {
 public:
  ~NearExtension() override;
  struct Awaited {
    // Whether it is there; moves on whatever can bring it. Ends the wait by throwing.
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
class COL_EXPORT WireExtension : public SideExtension {
 public:
  ~WireExtension() override;
  // From now on, the channel calls `ring` after everything that may end an operation of this rank, or bring a message
  // for probe(), unless a call of this rank has done it: at least once after each may_sleep(). From any thread, maybe
  // with locks of the channel held: `ring` must not call the channel, block or throw. An empty function ends this: once
  // on_change() has returned, the former one is not running any more.
  virtual void on_change(std::function<void()> ring) = 0;
  // The rank is about to sleep until `ring` is called. Returns whether it may: false if there may be something to do
  // already. Throws what progress() throws.
  virtual bool may_sleep() = 0;
  // Whether messages move on while this rank makes no call. Otherwise its looks bring them, and are worth some time.
  virtual bool moves_by_itself() const noexcept = 0;
};

// An extension for channels that choose, within a native entry, between ways that give the same bits.
class COL_EXPORT ReasonExtension {
 public:
  virtual ~ReasonExtension();
  // Which way start_native() would take, and why, for Group::explain(). The buffers of `request` need not exist. Thread
  // safe.
  virtual std::string how(const Request& request) const = 0;
};

// The end of an operation, as streams of its device see it. It may outlive the channel. Thread safe.
class COL_EXPORT DeviceEnd {
 public:
  virtual ~DeviceEnd();
  // What `stream` gets from now on comes after the operation. Null: the device's legacy default stream. Does not block.
  // If the operation is part of a graph, the stream becomes a part of the same capture. Throws invalid_argument for a
  // stream that cannot be used so, which spoils no capture if it can be told before; and io.
  virtual void hold_up(Stream stream) const = 0;
};

// An extension for channels that move the memory of a device. All other channels move host memory. The rules of Channel
// hold for it too.
class COL_EXPORT DeviceExtension {
 public:
  virtual ~DeviceExtension();
  // The memory that the channel moves.
  virtual Device device() const = 0;
  // Throws invalid_argument or unavailable if the channel cannot take the request, for example memory of another
  // device. That breaks nothing. The group layer asks before it counts the call, so the functions of the channel need
  // not check again. A message is asked as send or recv, with `in` alone. `algorithm` is empty if a plan runs.
  virtual void check(const Request& request) const = 0;
  // Whether the stream is being captured: work that is put in it then becomes part of a graph and does not run now.
  // Throws io.
  virtual bool is_captured(Stream stream) const = 0;
  // Operations posted from now on come after the work that the stream holds now. Throws unavailable if the stream is
  // being captured (that breaks nothing), and io.
  virtual void post_after(Stream stream) = 0;
  // The end of an operation whose ticket is valid. Posted messages are started first, and `wait` bounds that. Null if
  // only the host can tell the end, which is the default. Errors as wait(); one that the peers cause breaks the
  // channel.
  virtual std::shared_ptr<const DeviceEnd> end_of(Ticket ticket, WaitContext& wait);
  // As Channel::start_native() for each of them, in one launch as far as that is possible. They are independent, and
  // name one stream. All ranks start the same ones together. Returns their tickets, in order.
  virtual std::vector<Ticket> start_together(std::span<const Request* const> requests, WaitContext& wait) = 0;
  // Tells the backend of memory that others have allocated on the device, so that calls need not copy it. Not
  // collective. Returns what release_memory() takes. Throws invalid_argument if it is no memory of the device, and
  // unavailable, which break nothing; and errors as start_native(), with other codes.
  // The default is unavailable.
  virtual std::shared_ptr<void> register_memory(void* memory, std::size_t bytes, WaitContext& wait);
  // Forgets the memory, which is else forgotten with the channel. Errors as start_native(). The default does nothing.
  virtual void release_memory(const std::shared_ptr<void>& registration, WaitContext& wait);
  // Whether split() can make channels now; not, if what is in flight is in its way. The default is false.
  virtual bool can_split() const noexcept;
  // Makes the channel of a new group of `ranks`, in their order; or, if there are none, helps the others to make
  // theirs, and returns null. It shares connections and memory with this one, and what breaks one of them breaks all.
  // `request`: as for BackendFactory::connect(). Every rank of this channel calls it, and can_split() has been true on
  // all of them. Errors as start_native().
  virtual std::unique_ptr<Channel> split(std::span<const int> ranks, const ConnectRequest& request, WaitContext& wait);
  // Null if the channel has no calls over several GPUs. The object lives as long as the channel.
  virtual MultiChannel* multi() = 0;
};

// A copy that has been started. If the object is destroyed before the copy has ended, the copy goes on, and its memory
// must still stay valid.
class COL_EXPORT DeviceCopy {
 public:
  virtual ~DeviceCopy();
  // Returns whether the copy has ended. Does not block. Throws io if the device has failed.
  virtual bool done() = 0;
};

// Measures how long a device takes for the work in a stream, by the device's own clock. One thread at a time may use
// it.
class COL_EXPORT DeviceTimer {
 public:
  virtual ~DeviceTimer();
  // The stream that is measured, for Options::stream. It belongs to the timer and ends with it. It is not ordered with
  // the default stream.
  virtual Stream stream() const = 0;
  // start() marks in the stream where the measured work begins; stop() marks where it ends. They do not block. They
  // throw io.
  virtual void start() = 0;
  virtual void stop() = 0;
  // Seconds from the last start() to the last stop(); nothing until the device has reached that stop. Does not block.
  // Requires: both have been called. Throws io.
  virtual std::optional<double> seconds() = 0;
};

// How two buffers differ.
struct Difference {
  std::size_t count = 0;  // elements
  std::size_t first = 0;  // the index of the first element that differs, if any does
};

// A comparison that has been started. If the object is destroyed before it has ended, the comparison goes on, and its
// memory must still stay valid.
class COL_EXPORT DeviceComparison {
 public:
  virtual ~DeviceComparison();
  // The result; nothing until the comparison has ended. Does not block. Throws io if the device has failed.
  virtual std::optional<Difference> result() = 0;
};

// The memory of this host's devices, and copies between device memory and host memory. The group layer uses it for
// buffers of another kind than the memory that the group moves. Thread safe.
class COL_EXPORT DeviceMemory {
 public:
  virtual ~DeviceMemory();
  // How many devices this process sees, at least 1. The functions below throw invalid_argument for a device that does
  // not exist, and unavailable or io for a device that does not start.
  virtual int devices() const = 0;
  // The device that the calling thread has made current, as with cudaSetDevice(); nothing if it has made none current.
  virtual std::optional<int> current() const = 0;
  // The devices that this process has started, in whatever thread: a program does so where it first uses one, and col
  // for what it does there. Throws io.
  virtual std::vector<int> started() const = 0;
  // Makes the device current in the calling thread until the returned pointer is gone; then the device that was current
  // before is current again. The pointer must be released in the same thread. In this way a program without a CUDA
  // runtime chooses the device for a group that it makes.
  virtual std::shared_ptr<void> make_current(int device) = 0;
  // The model of the device: "NVIDIA H200".
  virtual std::string name(int device) = 0;
  // The bus address of the device: "0000:1b:00.0". The parts of one GPU (MIG) have one.
  virtual std::string bus(int device) = 0;
  // What nvidia-smi -L shows behind GPU- or MIG-: tells devices apart, whatever numbers the processes give them, and
  // the parts of one GPU as well.
  virtual std::string uuid(int device) = 0;
  // The device that a buffer is on, from its first byte to its last. Nothing for host memory, and nothing if the device
  // memory ends before `bytes`. `device` is the device where the caller expects it.
  virtual std::optional<int> device_of(const void* memory, std::size_t bytes, int device) = 0;
  // Memory of the device (allocate), or host memory that devices copy to and from at full speed (allocate_host). Not
  // zeroed. It is freed with the last pointer to it, which may wait for the device. Throws resource.
  virtual std::shared_ptr<void> allocate(int device, std::size_t bytes) = 0;
  virtual std::shared_ptr<void> allocate_host(int device, std::size_t bytes) = 0;
  // Whether the stream of the device is being captured: work that is put in it then becomes part of a graph and does
  // not run.
  virtual bool is_captured(int device, Stream stream) = 0;
  // Puts what `later` gets from now on after what `earlier` holds now. Both are streams of the device that `memory` is
  // on; null is its legacy default stream, and `earlier` may be the calling thread's (cudaStreamPerThread). Does not
  // block. Does nothing if they are one stream, or if `later` is being captured. Throws invalid_argument if `earlier`
  // alone is, and if `memory` is on no device; unavailable if one of them is the default stream, and a stream that is
  // ordered with it is being captured; and io. Spoils no capture.
  virtual void put_in_order(Stream earlier, Stream later, const void* memory) = 0;
  // Starts a copy between device memory and host memory, in either direction, or within one of them. The copy runs
  // after the work that `stream` of the device holds, and before work that the stream gets later. For the null stream,
  // it runs after the work that the device's default stream has got so far. Blocks for as long as the copy takes if the
  // host memory does not come from allocate_host(). Requires: the stream is not being captured.
  virtual std::unique_ptr<DeviceCopy> copy(void* to, const void* from, std::size_t bytes, int device,
                                           Stream stream) = 0;
  // Starts to compare `count` elements of 1, 2, 4 or 8 bytes bit by bit: a NaN equals a NaN with the same bits, and -0
  // differs from 0. Both buffers are in memory of the device, at any address. The order is that of copy(). Returns null
  // if col's kernels are missing (a build without nvcc) or cannot be loaded: compare on the host then. Requires: the
  // stream is not being captured.
  virtual std::unique_ptr<DeviceComparison> compare(const void* left, const void* right, std::size_t count,
                                                    std::size_t element_bytes, int device, Stream stream) = 0;
  virtual std::unique_ptr<DeviceTimer> make_timer(int device) = 0;
  // Bytes of the cache that the whole device shares. Buffers that together are larger do not stay in it.
  virtual std::size_t cache_bytes(int device) = 0;
  // Waits until the device has ended all work of this process, in every stream. Throws unavailable if the driver cannot
  // tell, what wait.check() throws, and io.
  virtual void synchronize(int device, WaitContext& wait) = 0;
};

// What a rank tells the others about itself when a group is made.
struct PeerInfo {
  int rank = 0;         // in the group; errors call the rank by it
  int global_rank = 0;  // in the job
  std::int64_t pid = 0;
  std::string hostname;
  std::string boot_id;  // with equal boot id and network namespace, loopback works
  std::string network_namespace;
  std::string pid_namespace = {};  // with all three equal, ranks can share memory
};

// The host of each of `peers`, as a number, in the order of first appearance. Ranks of one host can share memory and
// use loopback. Two containers on one machine that cannot do both are two hosts, and a rank that does not know where it
// is is alone.
COL_EXPORT std::vector<int> hosts_of(std::span<const PeerInfo> peers);

// A device that a rank wants to use, as it tells the others.
struct Seat {
  int rank = 0;
  std::string device = {};     // equal for the same device: its bus address and the boot id of the host
  std::string why_alone = {};  // why this rank cannot share the device with another rank; empty if it can
};
// Two ranks on one device.
struct SharedDevice {
  int first = 0, second = 0;
  std::string device = {};
  std::string problem = {};  // why one of the ranks cannot share it: "on rank 2, …"; empty if all can
};
// The first two of `seats` that are on one device; nothing if each has its own. All ranks that know the same seats get
// the same answer.
COL_EXPORT std::optional<SharedDevice> find_shared_device(std::span<const Seat> seats);

struct ConnectRequest {
  std::string_view group;
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;     // private to this group: any key may be used; shared, because adapters keep it
  std::span<const PeerInfo> peers;  // in rank order, this rank included
  bool same_host = true;            // every peer is reachable over loopback
  std::uint64_t token = 0;          // equal on all ranks of this group and on no others: proves who has connected
  std::string socket_ifname;        // COL_SOCKET_IFNAME: a name or a comma-separated list; empty: the backend chooses
  // For backends of devices: the channel makes its streams with the highest priority that the device has.
  bool is_high_priority_stream = false;
  // For backends of devices: GroupSpec::nccl_settings.
  std::string settings = {};
};

class COL_EXPORT BackendFactory {
 public:
  virtual ~BackendFactory();
  virtual std::string_view name() const = 0;
  // Why the backend cannot be used on this machine, in words; nothing if it can.
  virtual std::optional<std::string> unavailable_reason() const = 0;
  // The kind of memory that its channels move. The default is host memory. Plans run only on host memory: a channel for
  // another kind runs only its native entries.
  virtual Device::Type device() const;
  // The devices of this host. They may exist even if the backend cannot be used. Throws unavailable and says why if
  // there are none, which is the default. The object lives as long as the factory.
  virtual DeviceMemory& device_memory();
  // Why the backend cannot connect ranks that share one device; empty if it can, which is the default. Only asked if
  // the backend can be used.
  virtual std::string why_alone() const;
  // Connects this rank to its peers. Blocking. It returns only after every peer has entered connect() too, because the
  // caller then removes what the peers had to read. Throws what wait.check() throws, peer_lost, mismatch (a stranger
  // answered instead of a peer), io, resource. On failure it leaves nothing open.
  virtual std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) = 0;
  // For COL_LOG=info, in words: the interface and the address that a group of `request` will use.
  virtual std::string describe(const ConnectRequest& request) const = 0;
};

// The library of a backend that is loaded on first use (libcol_nccl.so) exports one C function without parameters, with
// the name kModuleEntry, which returns this struct. Such a library links libcol.so and uses only its public headers.
// Exceptions cross between the two libraries.
struct BackendModule {
  // Returns the value of an environment variable from libcol's table; nothing if it is unset or empty. Throws internal
  // for a name that is in no table.
  using Environment = std::function<std::optional<std::string>(std::string_view name)>;

  std::string_view build_id;  // identifies these headers and the compiler; libcol refuses a module with another id
  std::unique_ptr<BackendFactory> (*make_factory)(Environment environment);
};
inline constexpr const char* kModuleEntry = "col_backend_entry";
using ModuleEntry = const BackendModule*();

// Adds a backend under its name(), for programs that bring their own. The name is then accepted wherever text names a
// backend. Throws already_initialized if the name is taken. Thread safe.
COL_EXPORT void register_backend(std::unique_ptr<BackendFactory> factory);
// The backend of that name; null if there is none. Thread safe. The object lives as long as the process.
COL_EXPORT BackendFactory* find_backend(std::string_view name);
// The backend that moves the memory of devices; null if this build has none. Of several, the one that was registered
// first. Thread safe.
COL_EXPORT BackendFactory* find_device_backend();
COL_EXPORT std::vector<std::string> backend_names();

}  // namespace col
