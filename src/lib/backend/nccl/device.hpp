// One GPU as a rank uses it: its primary context, which the CUDA runtime and PyTorch use too, and the objects that are
// made in it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include <col/job.hpp>
#include <col/types.hpp>

#include "backend/nccl/cuda_driver.hpp"
#include "backend/nccl/left_behind.hpp"
#include "core/clock/clock.hpp"

namespace col::nccl_backend {

class GpuDevice {
 public:
  // Throws what CudaDriver::check() throws. Requires: 0 <= ordinal < cuda.devices. `cuda` must outlive it.
  GpuDevice(const CudaDriver& cuda, int ordinal);
  ~GpuDevice();
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  // Why there is no device of that number; nothing if there is one.
  static std::optional<std::string> why_none(const CudaDriver& cuda, int ordinal);
  // The device of the calling thread's current context; -1 if it has none.
  static int current(const CudaDriver& cuda);
  // True if this process has started the device, in whatever thread. Does not start it. Requires: as the constructor.
  static bool is_started(const CudaDriver& cuda, int ordinal);

  // Makes the device's context current in this thread as long as the Scope lives. Then the context from before is
  // current again. Where it is current already, that costs one look.
  class Scope {
   public:
    explicit Scope(const GpuDevice& device);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const CudaDriver& cuda_;
    bool pushed_ = false;
  };

  const CudaDriver& cuda() const noexcept { return cuda_; }
  int ordinal() const noexcept { return ordinal_; }
  CUcontext context() const noexcept { return context_; }
  std::string name() const;  // "NVIDIA H200"
  std::string bus() const;   // "0000:1b:00.0": where it is, whatever numbers processes give it
  std::string uuid()
      const;  // as nvidia-smi -L has it; tells the parts of one GPU apart, too (MIG): they have one bus()
  std::size_t cache_bytes() const;  // of the cache that the whole GPU shares

 private:
  const CudaDriver& cuda_;
  const int ordinal_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

// The device that a buffer is on. Nothing if no device knows its first byte or its last. Throws what
// CudaDriver::check() throws.
std::optional<int> device_of(const void* memory, std::size_t bytes, const CudaDriver& cuda);

// Throws invalid_argument if `stream` is no stream that other threads could use: NCCL starts work in threads of its
// own, and copies are started by whichever thread moves a call on.
void require_usable(Stream stream);

// Whether the caller's stream is being captured: work then becomes part of a graph, and none of it runs. Throws what
// require_usable() throws.
bool is_captured(Stream stream, const GpuDevice& device);

// True if it is the device's legacy default stream, by its name or without one.
inline bool is_default(Stream stream) {
  return stream.handle == nullptr || stream.handle == CU_STREAM_LEGACY;
}

// True if work can be ordered after the device's default stream: not while a stream is captured that is ordered with
// it, as those are which are not made with cudaStreamNonBlocking. To record an event there would spoil the capture.
bool is_default_open(const GpuDevice& device);
// Throws unavailable if it cannot.
void require_default_open(const GpuDevice& device);

enum class Priority { normal, highest };  // of work that waits for room on a device

// While it lives, the calling thread may make the calls that a capture of a graph forbids, in this thread or, in its
// global mode, in any: looks at events, and allocations. Without it, such a call fails, and spoils the capture. What is
// done meanwhile has nothing to do with the streams that are captured.
class BesideCaptures {
 public:
  explicit BesideCaptures(const CudaDriver& cuda) noexcept : cuda_(cuda) { exchange(); }
  ~BesideCaptures() { exchange(); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  void exchange() noexcept { cuda_.ThreadExchangeStreamCaptureMode(&mode_); }

  const CudaDriver& cuda_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// An object that has to be released. It is made and destroyed within a GpuDevice::Scope of its device.
class GpuStream {
 public:
  // It is not ordered with the default stream.
  explicit GpuStream(const CudaDriver& cuda, Priority priority = Priority::normal);
  ~GpuStream();
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;
  CUstream get() const noexcept { return stream_; }
  // Whether everything that it has been given has ended.
  bool done(const BesideCaptures& beside) const;

 private:
  const CudaDriver& cuda_;
  CUstream stream_ = nullptr;
};

class GpuEvent {
 public:
  enum class Timing : bool { no, yes };  // an event that keeps no time costs less

  explicit GpuEvent(const CudaDriver& cuda, Timing timing = Timing::no);
  ~GpuEvent();
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;
  CUevent get() const noexcept { return event_; }

  void record(CUstream stream);
  // The same for the legacy default stream of the current context. False, with nothing done, if that is none of the
  // event's, or none is current.
  bool record_default();
  // What `stream` gets from now on comes after the work before the recording.
  void hold_up(CUstream stream) const;
  // Records the event after all work that this process has put on the device, in every stream. Throws unavailable if
  // the driver is too old, and while a stream of the device is being captured.
  void record_all(const GpuDevice& device);
  // Whether the work before the recording has ended. The second is for who asks again and again.
  bool done() const { return done(BesideCaptures(cuda_)); }
  bool done(const BesideCaptures& beside) const;
  // Requires: both events keep time, and are done.
  double seconds_since(const GpuEvent& earlier) const;

 private:
  const CudaDriver& cuda_;
  CUevent event_ = nullptr;
};

class GpuMemory {
 public:
  GpuMemory(const CudaDriver& cuda, std::size_t bytes);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  void* get() const noexcept { return reinterpret_cast<void*>(address_); }

 private:
  const CudaDriver& cuda_;
  CUdeviceptr address_ = 0;
};

// Destroys objects of a device within its context, in this order. If that is gone, the driver is shutting down, and
// takes back everything itself.
template <class... Objects>
void release_on(const GpuDevice& device, std::unique_ptr<Objects>&... objects) noexcept {
  try {
    const GpuDevice::Scope scope(device);
    (objects.reset(), ...);
  } catch (const std::exception&) {
    (leave_behind(objects), ...);
  }
}

// The pauses while polling for something that nobody announces. At first there are none, because the answer may come in
// microseconds. Then they are a small part of the time waited so far, which leaves the processor to others, and makes
// no wait longer by more than that part.
class PollPause {
 public:
  // Waits for a moment. Throws what wait.check() throws.
  void operator()(WaitContext& wait) {
    // The clock is read less often than the device is polled.
    if (++turns_ % kTurnsPerCheck == 0) wait.check();
    if (turns_ < kEagerTurns) return;
    core::sleep_for(std::min(after(core::Clock::now() - begin_), wait.slice()));
    wait.check();
  }

  // The pause of who has waited for so long.
  static constexpr Duration after(Duration waited) { return std::clamp(waited / kPart, kShortest, kLongest); }

 private:
  static constexpr int kTurnsPerCheck = 64;
  static constexpr int kEagerTurns = 2000;
  static constexpr int kPart = 32;
  static constexpr Duration kShortest = std::chrono::microseconds(20);
  static constexpr Duration kLongest = std::chrono::milliseconds(1);

  const core::Clock::time_point begin_ = core::Clock::now();
  int turns_ = 0;
};

}  // namespace col::nccl_backend
