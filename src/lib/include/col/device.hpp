// Backends of devices (GPUs): the abilities of a channel that moves the memory of a device, and that memory itself.
// This file is for people who add such a backend. Programs that use col do not need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/channel.hpp>
#include <col/export.hpp>
#include <col/job.hpp>
#include <col/types.hpp>

namespace col {

class MultiChannel;

// The end of an operation, for which streams of its device can wait. The object may outlive the channel. Thread safe.
class COL_EXPORT DeviceEnd {
 public:
  virtual ~DeviceEnd();
  // Lets all work that `stream` gets from now on wait for the operation. Null: the device's legacy default stream. Does
  // not block. If the operation is part of a graph, the stream joins the same capture. Throws invalid_argument for a
  // stream that cannot wait for it, if possible before that spoils a capture; and io.
  virtual void hold_up(Stream stream) const = 0;
};

// For channels that move the memory of a device. All other channels move host memory. The rules of Channel
// hold for it too.
class COL_EXPORT DeviceOps {
 public:
  virtual ~DeviceOps();
  // The memory that the channel moves.
  virtual Device device() const = 0;
  // Throws invalid_argument or unavailable if the channel cannot take the request, for example memory of another
  // device. That breaks nothing. The group layer asks before it counts the call, so the functions of the channel need
  // not check again. A message is asked as send or recv, with `in` alone. `algorithm` is empty if a plan runs.
  virtual void check(const Request& request) const = 0;
  // True if the stream is being captured: work that is put in it then becomes part of a graph and does not run now.
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
  // Makes memory that others have allocated on the device known to the backend, so that calls need not copy it. Not
  // collective. Returns the handle for release_memory(). Throws invalid_argument if it is no memory of the device, and
  // unavailable, which is the default: these two break nothing. Other errors as start_native().
  virtual std::shared_ptr<void> register_memory(void* memory, std::size_t bytes, WaitContext& wait);
  // Forgets the memory; without this call, the end of the channel does. Errors as start_native(). The default does
  // nothing.
  virtual void release_memory(const std::shared_ptr<void>& registration, WaitContext& wait);
  // True if split() can make channels now; operations in flight may be in its way. The default is false.
  virtual bool can_split() const noexcept;
  // Makes the channel of a new group of `ranks`, in their order. If `ranks` is empty, it helps the others to make
  // theirs, and returns null. The new channel shares connections and memory with this one: an error that breaks one of
  // them breaks all. `request`: as for BackendFactory::connect(). Every rank of this channel calls it, and can_split()
  // has been true on all of them. Errors as start_native().
  virtual std::unique_ptr<Channel> split(std::span<const int> ranks, const ConnectRequest& request, WaitContext& wait);
  // Null if the channel has no calls over several GPUs. The object lives as long as the channel.
  virtual MultiChannel* multi() = 0;
};

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
  // The devices that this process has started, in any thread: the program does so at its first use of a device, and so
  // does col. Throws io.
  virtual std::vector<int> started() const = 0;
  // Makes the device current in the calling thread until the returned pointer is gone; then the device that was current
  // before is current again. The pointer must be released in the same thread. In this way a program without a CUDA
  // runtime chooses the device for a group that it makes.
  virtual std::shared_ptr<void> make_current(int device) = 0;
  // The model of the device: "NVIDIA H200".
  virtual std::string name(int device) = 0;
  // The bus address of the device: "0000:1b:00.0". The parts of one GPU (MIG) have one.
  virtual std::string bus(int device) = 0;
  // The text that nvidia-smi -L shows behind GPU- or MIG-. It tells devices apart, and parts of one GPU too, although
  // processes may give them different numbers.
  virtual std::string uuid(int device) = 0;
  // The device that a buffer is on, from its first byte to its last. Nothing for host memory, and nothing if the device
  // memory ends before `bytes`. `device` is where the caller expects it.
  virtual std::optional<int> device_of(const void* memory, std::size_t bytes, int device) = 0;
  // Memory of the device (allocate), or host memory that devices copy to and from at full speed (allocate_host). Not
  // zeroed. It is freed with the last pointer to it, which may wait for the device. Throws resource.
  virtual std::shared_ptr<void> allocate(int device, std::size_t bytes) = 0;
  virtual std::shared_ptr<void> allocate_host(int device, std::size_t bytes) = 0;
  // True if the stream of the device is being captured: work that is put in it then becomes part of a graph and does
  // not run.
  virtual bool is_captured(int device, Stream stream) = 0;
  // Makes work that `later` gets from now on wait for the work that `earlier` holds now. Both are streams of the device
  // that `memory` is on; null is its legacy default stream, and `earlier` may be the calling thread's
  // (cudaStreamPerThread). Does not block. Does nothing if they are one stream, or if `later` is being captured. Throws
  // invalid_argument if only `earlier` is being captured, and if `memory` is on no device; unavailable if one of them
  // is the default stream, and a stream that is ordered with it is being captured; and io. Spoils no capture.
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

// The backend that moves the memory of devices; null if this build has none. Of several, the one that was registered
// first. Thread safe.
COL_EXPORT BackendFactory* find_device_backend();

}  // namespace col
