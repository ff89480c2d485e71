#include "backend/nccl/device_memory.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "backend/nccl/device_comparison.hpp"
#include "backend/nccl/device_timer.hpp"
#include "backend/nccl/poll_pause.hpp"

namespace col::nccl_backend {

GpuHostMemory::GpuHostMemory(const CudaDriver& cuda, std::size_t bytes) : cuda_(cuda) {
  cuda_.check(cuda_.MemHostAlloc(&memory_, bytes, CU_MEMHOSTALLOC_PORTABLE), "cannot allocate page-locked host memory");
}

GpuHostMemory::~GpuHostMemory() {
  cuda_.MemFreeHost(memory_);
}

// One device, and the stream that copies and comparisons run in when the caller names none.
class CudaMemory::Gpu {
 public:
  Gpu(const CudaDriver& cuda, int ordinal) : device(cuda, ordinal) {
    const GpuDevice::Scope scope(device);
    stream_ = std::make_unique<GpuStream>(cuda);
    before_ = std::make_unique<GpuEvent>(cuda);
  }
  ~Gpu() {
    try {
      const GpuDevice::Scope scope(device);
      comparer_.reset();
      before_.reset();
      stream_.reset();
    } catch (const std::exception&) {  // the driver is shutting down, and takes back everything itself
      (void)comparer_.release();
      (void)before_.release();
      (void)stream_.release();
    }
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const GpuDevice device;

  // Requires: the device is current. Starts the copy, and returns the event at its end.
  std::unique_ptr<GpuEvent> copy(void* to, const void* from, std::size_t bytes, Stream stream) {
    const CudaDriver& cuda = device.cuda();
    auto ended = std::make_unique<GpuEvent>(cuda);
    const std::lock_guard lock(mutex_);
    const CUstream in = ordered(stream);
    cuda.check(cuda.MemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes, in),
               "cannot copy between the GPU and the host");
    ended->record(in);
    return ended;
  }

  // Requires: the device is current. Null: there are no kernels for it. Not made for copies alone, as the driver may
  // wait for the device to load them.
  Comparer* comparer() {
    const std::lock_guard lock(mutex_);
    if (comparer_ == nullptr) comparer_ = std::make_unique<Comparer>(device);
    return comparer_->is_able() ? comparer_.get() : nullptr;
  }
  std::unique_ptr<Comparer::Found> compare(const CompareArguments& what, std::size_t element_bytes, Stream stream) {
    const std::lock_guard lock(mutex_);
    return comparer_->start(what, element_bytes, ordered(stream));
  }

 private:
  // The caller's stream; else ours, after what the device's default stream has been given so far. Requires: locked.
  CUstream ordered(Stream stream) {
    if (stream.handle != nullptr) return static_cast<CUstream>(stream.handle);
    const CudaDriver& cuda = device.cuda();
    before_->record(CU_STREAM_LEGACY);
    cuda.check(cuda.StreamWaitEvent(stream_->get(), before_->get(), CU_EVENT_WAIT_DEFAULT),
               "cannot order CUDA streams");
    return stream_->get();
  }

  std::mutex mutex_;  // guards the comparer, and the pair: the event is recorded and waited for before another thread
                      // records it
  std::unique_ptr<Comparer> comparer_;  // null until it is asked for
  std::unique_ptr<GpuStream> stream_;
  std::unique_ptr<GpuEvent> before_;
};

namespace {

template <class Gpu>
class Copy final : public DeviceCopy {
 public:
  Copy(std::shared_ptr<Gpu> gpu, std::unique_ptr<GpuEvent> ended) : gpu_(std::move(gpu)), ended_(std::move(ended)) {}
  ~Copy() override {
    try {
      const GpuDevice::Scope scope(gpu_->device);
      ended_.reset();
    } catch (const std::exception&) {
      (void)ended_.release();
    }
  }
  bool done() override {
    const GpuDevice::Scope scope(gpu_->device);
    return ended_->done();
  }

 private:
  const std::shared_ptr<Gpu> gpu_;  // shared: a copy may be looked at to the end of the process
  std::unique_ptr<GpuEvent> ended_;
};

// Memory of a device, or page-locked, that goes back within the device's context.
template <class Memory, class Gpu>
std::shared_ptr<void> make_memory(std::shared_ptr<Gpu> gpu, std::size_t bytes) {
  const GpuDevice::Scope scope(gpu->device);
  auto memory = std::make_unique<Memory>(gpu->device.cuda(), std::max<std::size_t>(bytes, 1));
  void* const address = memory->get();
  return {address, [gpu = std::move(gpu), kept = memory.release()](void*) {
            try {
              const GpuDevice::Scope within(gpu->device);
              delete kept;
            } catch (const std::exception&) {  // the driver is shutting down, and takes it back
            }
          }};
}

}  // namespace

std::shared_ptr<CudaMemory::Gpu> CudaMemory::gpu(int device) {
  if (const auto problem = GpuDevice::why_none(cuda_, device)) throw Error(ErrorCode::invalid_argument, *problem);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Gpu>& found = gpus_[device];
  if (found == nullptr) found = std::make_shared<Gpu>(cuda_, device);
  return found;
}

std::optional<int> CudaMemory::current() const {
  const int ordinal = GpuDevice::current(cuda_);
  return ordinal < 0 ? std::nullopt : std::optional(ordinal);
}

std::shared_ptr<void> CudaMemory::make_current(int device) {
  struct Current {
    explicit Current(std::shared_ptr<Gpu> made) : gpu(std::move(made)), scope(gpu->device) {}
    const std::shared_ptr<Gpu> gpu;  // shared with the memory that is on it
    const GpuDevice::Scope scope;
  };
  return std::make_shared<Current>(gpu(device));
}

std::string CudaMemory::name(int device) {
  return gpu(device)->device.name();
}

std::string CudaMemory::bus(int device) {
  return gpu(device)->device.bus();
}

std::optional<int> CudaMemory::device_of(const void* memory, std::size_t bytes, int device) {
  return nccl_backend::device_of(memory, bytes, gpu(device)->device);
}

std::shared_ptr<void> CudaMemory::allocate(int device, std::size_t bytes) {
  return make_memory<GpuMemory>(gpu(device), bytes);
}

std::shared_ptr<void> CudaMemory::allocate_host(int device, std::size_t bytes) {
  return make_memory<GpuHostMemory>(gpu(device), bytes);
}

bool CudaMemory::is_captured(int device, Stream stream) {
  return nccl_backend::is_captured(stream, gpu(device)->device);
}

std::unique_ptr<DeviceCopy> CudaMemory::copy(void* to, const void* from, std::size_t bytes, int device, Stream stream) {
  std::shared_ptr<Gpu> on = gpu(device);
  const GpuDevice::Scope scope(on->device);
  auto ended = on->copy(to, from, bytes, stream);
  return std::make_unique<Copy<Gpu>>(std::move(on), std::move(ended));
}

std::unique_ptr<DeviceComparison> CudaMemory::compare(const void* left, const void* right, std::size_t count,
                                                      std::size_t element_bytes, int device, Stream stream) {
  const std::shared_ptr<Gpu> on = gpu(device);
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

std::unique_ptr<DeviceTimer> CudaMemory::make_timer(int device) {
  const std::shared_ptr<Gpu> on = gpu(device);
  return std::make_unique<CudaTimer>(std::shared_ptr<const GpuDevice>(on, &on->device));
}

std::size_t CudaMemory::cache_bytes(int device) {
  return gpu(device)->device.cache_bytes();
}

// A device that nobody uses otherwise is not kept started for it.
void CudaMemory::synchronize(int device, WaitContext& wait) {
  if (const auto problem = GpuDevice::why_none(cuda_, device)) throw Error(ErrorCode::invalid_argument, *problem);
  const GpuDevice asked(cuda_, device);
  const GpuDevice::Scope scope(asked);
  GpuEvent ended(cuda_);
  ended.record_all(asked);
  wait.describe(fmt::format("what GPU {} is doing for this process", device));
  for (PollPause pause; !ended.done();) pause(wait);
}

}  // namespace col::nccl_backend
