#include "backend/nccl/device_memory.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/nccl/device.hpp"
#include "backend/nccl/kernels.hpp"
#include "backend/nccl/known_memory.hpp"

namespace col::nccl_backend {
namespace {

// Page-locked host memory, which the GPU copies to and from at full speed.
class GpuHostMemory {
 public:
  GpuHostMemory(const CudaDriver& cuda, std::size_t bytes) : cuda_(cuda) {
    const BesideCaptures beside(cuda_);
    cuda_.check(cuda_.MemHostAlloc(&memory_, bytes, CU_MEMHOSTALLOC_PORTABLE),
                "cannot allocate page-locked host memory");
  }
  ~GpuHostMemory() {
    const BesideCaptures beside(cuda_);
    cuda_.MemFreeHost(memory_);
  }
  GpuHostMemory(const GpuHostMemory&) = delete;
  GpuHostMemory& operator=(const GpuHostMemory&) = delete;
  void* get() const noexcept { return memory_; }

 private:
  const CudaDriver& cuda_;
  void* memory_ = nullptr;
};

// ---- Comparisons, by a kernel of ours

// Kernels and buffers for comparisons on one GPU. Made and destroyed within a GpuDevice::Scope of its device. Thread
// safe.
class Comparer {
 public:
  explicit Comparer(const GpuDevice& device) : device_(device), kernels_(device.cuda()) {}

  // True if there are kernels for comparisons.
  bool is_able() const noexcept { return kernels_.are_loaded(); }

  // The result of a comparison: where the kernel writes it, and where the host reads it.
  struct Found {
    explicit Found(const CudaDriver& cuda)
        : on_gpu(cuda, sizeof(CompareResult)), on_host(cuda, sizeof(CompareResult)), ended(cuda) {}
    GpuMemory on_gpu;
    GpuHostMemory on_host;
    GpuEvent ended;
  };
  // Starts a comparison in the stream. Requires: is_able(), and the device is current.
  std::unique_ptr<Found> start(const CompareArguments& what, std::size_t element_bytes, CUstream stream) {
    const CudaDriver& cuda = device_.cuda();
    std::unique_ptr<Found> found = take();
    if (found == nullptr) found = std::make_unique<Found>(cuda);
    const auto result = reinterpret_cast<CUdeviceptr>(found->on_gpu.get());
    cuda.check(cuda.MemsetD8Async(result, 0, sizeof(CompareResult), stream), "cannot zero memory of the GPU");
    CompareArguments arguments = what;
    arguments.result = static_cast<CompareResult*>(found->on_gpu.get());
    if (arguments.count > 0) kernels_.compare(element_bytes, arguments, stream);
    cuda.check(
        cuda.MemcpyAsync(reinterpret_cast<CUdeviceptr>(found->on_host.get()), result, sizeof(CompareResult), stream),
        "cannot copy from the GPU to the host");
    found->ended.record(stream);
    return found;
  }
  // Takes `found` back. If its comparison has ended, the next one uses it; otherwise it is kept unused until the end,
  // because the kernel may still write to it.
  void take_back(std::unique_ptr<Found> found, bool has_ended) {
    const std::lock_guard lock(mutex_);
    (has_ended ? idle_ : abandoned_).push_back(std::move(found));
  }

 private:
  std::unique_ptr<Found> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Found> found = std::move(idle_.back());
    idle_.pop_back();
    return found;
  }

  const GpuDevice& device_;
  const Kernels kernels_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Found>> idle_, abandoned_;
};

class CudaComparison final : public DeviceComparison {
 public:
  // `comparer` is shared with its device, and keeps the device started. Requires: `found` comes from it, and `device`
  // is its device.
  CudaComparison(std::shared_ptr<Comparer> comparer, const GpuDevice& device, std::unique_ptr<Comparer::Found> found)
      : comparer_(std::move(comparer)), device_(device), found_(std::move(found)) {}
  ~CudaComparison() override { comparer_->take_back(std::move(found_), done_); }

  std::optional<Difference> result() override {
    const GpuDevice::Scope scope(device_);
    if (!found_->ended.done()) return std::nullopt;
    done_ = true;
    const auto& found = *static_cast<const CompareResult*>(found_->on_host.get());
    if (found.count == 0) return Difference();
    return Difference{.count = found.count, .first = ~found.first_inverted};
  }

 private:
  const std::shared_ptr<Comparer> comparer_;
  const GpuDevice& device_;
  std::unique_ptr<Comparer::Found> found_;
  bool done_ = false;
};

// ---- Time, by the GPU's own clock, between two events in a stream

class CudaTimer final : public DeviceTimer {
 public:
  // `device` is shared with others that keep it started.
  explicit CudaTimer(std::shared_ptr<const GpuDevice> device) : device_(std::move(device)) {
    const GpuDevice::Scope scope(*device_);
    stream_ = std::make_unique<GpuStream>(device_->cuda());
    begin_ = std::make_unique<GpuEvent>(device_->cuda(), GpuEvent::Timing::yes);
    end_ = std::make_unique<GpuEvent>(device_->cuda(), GpuEvent::Timing::yes);
  }
  ~CudaTimer() override { release_on(*device_, end_, begin_, stream_); }

  Stream stream() const override { return {stream_->get()}; }
  void start() override { record(*begin_); }
  void stop() override { record(*end_); }
  std::optional<double> seconds() override {
    const GpuDevice::Scope scope(*device_);
    if (!end_->done()) return std::nullopt;
    return end_->seconds_since(*begin_);
  }

 private:
  void record(GpuEvent& event) {
    const GpuDevice::Scope scope(*device_);
    event.record(stream_->get());
  }

  const std::shared_ptr<const GpuDevice> device_;
  std::unique_ptr<GpuStream> stream_;
  std::unique_ptr<GpuEvent> begin_, end_;
};

// ---- Memory

// One device, and the streams that copies and comparisons run in when the caller names none: one for each direction,
// because a GPU copies both ways at a time.
class MemoryGpu {
 public:
  MemoryGpu(const CudaDriver& cuda, int ordinal) : device(cuda, ordinal) {
    const GpuDevice::Scope scope(device);
    to_device_ = std::make_unique<GpuStream>(cuda);
    to_host_ = std::make_unique<GpuStream>(cuda);
    before_ = std::make_unique<GpuEvent>(cuda);
  }
  ~MemoryGpu() {
    for (auto& event : idle_) release_on(device, event);
    release_on(device, comparer_, before_, to_host_, to_device_);
  }
  MemoryGpu(const MemoryGpu&) = delete;
  MemoryGpu& operator=(const MemoryGpu&) = delete;

  const GpuDevice device;

  // An event at the end of a copy. It serves the next copies, too: making one takes longer than a small copy.
  class Ended {
   public:
    // Requires: the device is current.
    explicit Ended(MemoryGpu& gpu) : gpu_(gpu), event_(gpu.take_event()) {}
    ~Ended() {
      if (event_ == nullptr) return;
      const std::lock_guard lock(gpu_.mutex_);
      try {
        gpu_.idle_.push_back(std::move(event_));
      } catch (const std::bad_alloc&) {
        leave_behind(event_);
      }
    }
    Ended(Ended&&) = default;
    Ended& operator=(Ended&&) = delete;
    GpuEvent& operator*() const { return *event_; }

   private:
    MemoryGpu& gpu_;
    std::unique_ptr<GpuEvent> event_;
  };

  // Requires: the device is current. Starts the copy.
  Ended copy(void* to, const void* from, std::size_t bytes, Stream stream) {
    Ended ended(*this);
    if (stream.handle == nullptr && bytes <= kSmallCopy) stream.handle = CU_STREAM_LEGACY;
    if (stream.handle != nullptr) {
      copy_in(static_cast<CUstream>(stream.handle), to, from, bytes, *ended);
      return ended;
    }
    const GpuStream& own = is_on_device(to) ? *to_device_ : *to_host_;
    const std::lock_guard lock(mutex_);
    copy_in(ordered(stream, own), to, from, bytes, *ended);
    return ended;
  }

  // Requires: the device is current.
  void put_in_order(Stream earlier, Stream later) {
    const auto handle = [](Stream stream) {
      return stream.handle == nullptr ? CU_STREAM_LEGACY : static_cast<CUstream>(stream.handle);
    };
    const std::lock_guard lock(mutex_);
    before_->record(handle(earlier));
    before_->hold_up(handle(later));
  }

  // Requires: the device is current. Null: there are no kernels for it. Kernels are loaded only now, because the driver
  // may wait for the device to load them, and copies need none.
  Comparer* comparer() {
    const std::lock_guard lock(mutex_);
    if (comparer_ == nullptr) comparer_ = std::make_unique<Comparer>(device);
    return comparer_->is_able() ? comparer_.get() : nullptr;
  }
  std::unique_ptr<Comparer::Found> compare(const CompareArguments& what, std::size_t element_bytes, Stream stream) {
    const std::lock_guard lock(mutex_);
    return comparer_->start(what, element_bytes, ordered(stream, *to_host_));
  }

 private:
  // The largest copy that goes into the default stream itself. A wait of our own stream for the default one would take
  // longer, and so small a copy delays the default stream only a little.
  static constexpr std::size_t kSmallCopy = std::size_t{64} << 10;

  std::unique_ptr<GpuEvent> take_event() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<GpuEvent> event = std::move(idle_.back());
        idle_.pop_back();
        return event;
      }
    }
    return std::make_unique<GpuEvent>(device.cuda());
  }

  void copy_in(CUstream stream, void* to, const void* from, std::size_t bytes, GpuEvent& ended) const {
    const CudaDriver& cuda = device.cuda();
    cuda.check(cuda.MemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes, stream),
               "cannot copy between the GPU and the host");
    ended.record(stream);
  }

  // Memory that the driver did not allocate is host memory: the driver does not know it.
  bool is_on_device(const void* memory) const {
    unsigned type = 0;
    const CUresult found = device.cuda().PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                             reinterpret_cast<CUdeviceptr>(memory));
    return found == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE;
  }

  // The caller's stream; without one `own`, after the work that the device's default stream has so far. Requires:
  // locked.
  CUstream ordered(Stream stream, const GpuStream& own) {
    if (stream.handle != nullptr) return static_cast<CUstream>(stream.handle);
    before_->record(CU_STREAM_LEGACY);
    before_->hold_up(own.get());
    return own.get();
  }

  std::mutex mutex_;  // guards what follows; before_ is recorded and waited for under one lock, so that no other
                      // thread records it in between
  std::unique_ptr<Comparer> comparer_;              // null until it is asked for
  std::unique_ptr<GpuStream> to_device_, to_host_;  // comparisons run in to_host_
  std::unique_ptr<GpuEvent> before_;
  std::vector<std::unique_ptr<GpuEvent>> idle_;  // for copies; the earlier copy of one may still run
};

class CudaCopy final : public DeviceCopy {
 public:
  CudaCopy(std::shared_ptr<MemoryGpu> gpu, MemoryGpu::Ended ended) : gpu_(std::move(gpu)), ended_(std::move(ended)) {}
  bool done() override {
    const GpuDevice::Scope scope(gpu_->device);
    return (*ended_).done();
  }

 private:
  const std::shared_ptr<MemoryGpu> gpu_;  // shared: done() may be called until the process ends
  MemoryGpu::Ended ended_;
};

// Memory of a device, or page-locked host memory, which is freed within the device's context.
template <class Memory>
std::shared_ptr<void> make_memory(std::shared_ptr<MemoryGpu> gpu, std::size_t bytes) {
  const GpuDevice::Scope scope(gpu->device);
  auto memory = std::make_unique<Memory>(gpu->device.cuda(), std::max<std::size_t>(bytes, 1));
  void* const address = memory->get();
  return {address, [gpu = std::move(gpu), kept = memory.release()](void*) {
            std::unique_ptr<Memory> last(kept);
            release_on(gpu->device, last);
          }};
}

class CudaMemory final : public DeviceMemory {
 public:
  explicit CudaMemory(const CudaDriver& cuda) : cuda_(cuda) {}

  int devices() const override { return cuda_.devices; }

  std::optional<int> current() const override {
    const int ordinal = GpuDevice::current(cuda_);
    return ordinal < 0 ? std::nullopt : std::optional(ordinal);
  }

  std::vector<int> started() const override {
    std::vector<int> all;
    for (int device = 0; device < cuda_.devices; ++device)
      if (GpuDevice::is_started(cuda_, device)) all.push_back(device);
    return all;
  }

  std::shared_ptr<void> make_current(int device) override {
    struct Current {
      explicit Current(std::shared_ptr<MemoryGpu> made) : gpu(std::move(made)), scope(gpu->device) {}
      const std::shared_ptr<MemoryGpu> gpu;  // shared with the memory that is on it
      const GpuDevice::Scope scope;
    };
    return std::make_shared<Current>(gpu(device));
  }

  std::string name(int device) override { return gpu(device)->device.name(); }
  std::string bus(int device) override { return gpu(device)->device.bus(); }
  std::string uuid(int device) override { return gpu(device)->device.uuid(); }
  std::size_t cache_bytes(int device) override { return gpu(device)->device.cache_bytes(); }

  std::optional<int> device_of(const void* memory, std::size_t bytes, int device) override {
    const std::shared_ptr<MemoryGpu> asked = gpu(device);
    const GpuDevice::Scope scope(asked->device);
    const std::lock_guard lock(known_mutex_);
    return known_.device_of(memory, bytes, cuda_);
  }

  std::shared_ptr<void> allocate(int device, std::size_t bytes) override {
    return make_memory<GpuMemory>(gpu(device), bytes);
  }

  std::shared_ptr<void> allocate_host(int device, std::size_t bytes) override {
    return make_memory<GpuHostMemory>(gpu(device), bytes);
  }

  bool is_captured(int device, Stream stream) override {
    const std::shared_ptr<MemoryGpu> on = gpu(device);
    if (is_default(stream)) return !is_default_open(on->device);
    return nccl_backend::is_captured(stream, on->device);
  }

  void put_in_order(Stream earlier, Stream later, const void* memory) override {
    if (earlier.handle == later.handle || (is_default(earlier) && is_default(later))) return;
    const std::optional<int> device = nccl_backend::device_of(memory, 1, cuda_);
    if (!device) throw Error(ErrorCode::invalid_argument, "the memory is on no GPU that the CUDA driver knows");
    const std::shared_ptr<MemoryGpu> on = gpu(*device);
    if (nccl_backend::is_captured(later, on->device)) return;
    const GpuDevice::Scope scope(on->device);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!is_default(earlier))
      cuda_.check(cuda_.StreamIsCapturing(static_cast<CUstream>(earlier.handle), &status), "cannot use the stream");
    if (status != CU_STREAM_CAPTURE_STATUS_NONE)
      throw Error(
          ErrorCode::invalid_argument,
          "it is being captured, and only what is captured with it comes after it; pass it as the call's stream");
    if (is_default(earlier) || is_default(later)) require_default_open(on->device);
    on->put_in_order(earlier, later);
  }

  std::unique_ptr<DeviceCopy> copy(void* to, const void* from, std::size_t bytes, int device, Stream stream) override {
    std::shared_ptr<MemoryGpu> on = gpu(device);
    const GpuDevice::Scope scope(on->device);
    auto ended = on->copy(to, from, bytes, stream);
    return std::make_unique<CudaCopy>(std::move(on), std::move(ended));
  }

  std::unique_ptr<DeviceComparison> compare(const void* left, const void* right, std::size_t count,
                                            std::size_t element_bytes, int device, Stream stream) override {
    const std::shared_ptr<MemoryGpu> on = gpu(device);
    const GpuDevice::Scope scope(on->device);
    Comparer* const comparer = on->comparer();
    if (comparer == nullptr) return nullptr;
    const CompareArguments what{.left = static_cast<const std::byte*>(left),
                                .right = static_cast<const std::byte*>(right),
                                .count = count,
                                .result = nullptr};
    auto found = on->compare(what, element_bytes, stream);
    return std::make_unique<CudaComparison>(std::shared_ptr<Comparer>(on, comparer), on->device, std::move(found));
  }

  std::unique_ptr<DeviceTimer> make_timer(int device) override {
    const std::shared_ptr<MemoryGpu> on = gpu(device);
    return std::make_unique<CudaTimer>(std::shared_ptr<const GpuDevice>(on, &on->device));
  }

  // Uses a GpuDevice of its own, which does not keep the device started after this call.
  void synchronize(int device, WaitContext& wait) override {
    require(device);
    const GpuDevice asked(cuda_, device);
    const GpuDevice::Scope scope(asked);
    GpuEvent ended(cuda_);
    ended.record_all(asked);
    wait.describe(fmt::format("what GPU {} is doing for this process", device));
    for (PollPause pause; !ended.done();) pause(wait);
  }

 private:
  void require(int device) const {
    if (const auto problem = GpuDevice::why_none(cuda_, device)) throw Error(ErrorCode::invalid_argument, *problem);
  }

  std::shared_ptr<MemoryGpu> gpu(int device) {
    require(device);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<MemoryGpu>& found = gpus_[device];
    if (found == nullptr) found = std::make_shared<MemoryGpu>(cuda_, device);
    return found;
  }

  const CudaDriver& cuda_;
  std::mutex mutex_;                                // guards what follows
  std::map<int, std::shared_ptr<MemoryGpu>> gpus_;  // the GPUs used so far; shared with the memory that is on them
  std::mutex known_mutex_;                          // guards the next
  KnownMemory known_;
};

}  // namespace

std::unique_ptr<DeviceMemory> make_device_memory(const CudaDriver& cuda) {
  return std::make_unique<CudaMemory>(cuda);
}

}  // namespace col::nccl_backend
