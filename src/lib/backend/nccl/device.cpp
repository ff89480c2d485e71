#include "backend/nccl/device.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <col/error.hpp>

namespace col::nccl_backend {

GpuDevice::GpuDevice(const CudaDriver& cuda, int ordinal) : cuda_(cuda), ordinal_(ordinal) {
  const BesideCaptures beside(cuda_);  // the first reference to a context makes it
  cuda_.check(cuda_.DeviceGet(&device_, ordinal), "cannot use the CUDA device");
  cuda_.check(cuda_.DevicePrimaryCtxRetain(&context_, device_), "cannot start the CUDA device");
}

GpuDevice::~GpuDevice() {
  const BesideCaptures beside(cuda_);
  cuda_.DevicePrimaryCtxRelease(device_);
}

std::optional<std::string> GpuDevice::why_none(const CudaDriver& cuda, int ordinal) {
  if (ordinal >= 0 && ordinal < cuda.devices) return std::nullopt;
  return fmt::format("GPU {} is not there: this process sees {}, numbered from 0; see CUDA_VISIBLE_DEVICES", ordinal,
                     cuda.devices);
}

int GpuDevice::current(const CudaDriver& cuda) {
  CUcontext context = nullptr;
  CUdevice device = 0;
  if (cuda.CtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return -1;
  return cuda.CtxGetDevice(&device) == CUDA_SUCCESS ? static_cast<int>(device) : -1;
}

bool GpuDevice::is_started(const CudaDriver& cuda, int ordinal) {
  CUdevice device = 0;
  unsigned flags = 0;
  int is_active = 0;
  cuda.check(cuda.DeviceGet(&device, ordinal), "cannot use the CUDA device");
  cuda.check(cuda.DevicePrimaryCtxGetState(device, &flags, &is_active), "cannot ask whether the CUDA device is used");
  return is_active != 0;
}

std::string GpuDevice::name() const {
  std::array<char, 256> text{};
  cuda_.check(cuda_.DeviceGetName(text.data(), static_cast<int>(text.size()), device_), "cannot name the CUDA device");
  return text.data();
}

std::string GpuDevice::bus() const {
  std::array<char, 64> text{};
  cuda_.check(cuda_.DeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device_),
              "cannot locate the CUDA device");
  return text.data();
}

std::string GpuDevice::uuid() const {
  CUuuid id{};
  cuda_.check(cuda_.DeviceGetUuid(&id, device_), "cannot identify the CUDA device");
  std::string text;
  for (std::size_t i = 0; i < sizeof id.bytes; ++i) {
    if (i >= 4 && i <= 10 && i % 2 == 0) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(id.bytes[i]));
  }
  return text;
}

std::size_t GpuDevice::cache_bytes() const {
  int bytes = 0;
  cuda_.check(cuda_.DeviceGetAttribute(&bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device_),
              "cannot ask for the size of the GPU's cache");
  return static_cast<std::size_t>(bytes);
}

GpuDevice::Scope::Scope(const GpuDevice& device) : cuda_(device.cuda_) {
  CUcontext current = nullptr;
  if (cuda_.CtxGetCurrent(&current) == CUDA_SUCCESS && current == device.context_) return;
  cuda_.check(cuda_.CtxPushCurrent(device.context_), "cannot switch to the CUDA device");
  pushed_ = true;
}

GpuDevice::Scope::~Scope() {
  CUcontext popped = nullptr;
  if (pushed_) cuda_.CtxPopCurrent(&popped);
}

std::optional<int> device_of(const void* memory, std::size_t bytes, const CudaDriver& cuda) {
  const auto begin = reinterpret_cast<CUdeviceptr>(memory);
  std::optional<int> device;
  // Only the two ends: between them there may be several allocations, mapped one beside the other. And not the range
  // that the driver names: it is that of the addresses, whether they are mapped or not.
  for (const CUdeviceptr place : {begin, begin + std::max<std::size_t>(bytes, 1) - 1}) {
    int ordinal = -1;
    const CUresult found = cuda.PointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, place);
    if (found == CUDA_ERROR_INVALID_VALUE) return std::nullopt;
    cuda.check(found, "cannot look at the memory");
    if (device && *device != ordinal) return std::nullopt;
    device = ordinal;
  }
  return device;
}

void require_usable(Stream stream) {
  if (stream.handle != CU_STREAM_PER_THREAD) return;
  throw Error(
      ErrorCode::invalid_argument,
      "the stream is cudaStreamPerThread, which is another stream in each thread, and NCCL and col work in threads "
      "of their own; pass a stream that you have created, or none");
}

bool is_captured(Stream stream, const GpuDevice& device) {
  require_usable(stream);
  if (is_default(stream)) return false;  // it cannot be
  const CudaDriver& cuda = device.cuda();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const auto look = [&] { return cuda.StreamIsCapturing(static_cast<CUstream>(stream.handle), &status); };
  std::optional<GpuDevice::Scope> scope;
  CUresult looked = look();
  if (looked == CUDA_ERROR_INVALID_CONTEXT) {  // none is current: streams know theirs
    scope.emplace(device);
    looked = look();
  }
  cuda.check(looked, "cannot use the stream");
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// Whatever else is wrong with the device, the work finds that is put on it, and breaks the group on all ranks.
bool is_default_open(const GpuDevice& device) {
  try {
    const GpuDevice::Scope scope(device);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return device.cuda().StreamIsCapturing(CU_STREAM_LEGACY, &status) != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  } catch (const Error&) {
    return true;
  }
}

void require_default_open(const GpuDevice& device) {
  if (is_default_open(device)) return;
  throw Error(ErrorCode::unavailable,
              fmt::format("a stream of GPU {} is being captured that is ordered with the default stream, and nothing "
                          "can come after the default stream meanwhile; capture in a stream made with "
                          "cudaStreamNonBlocking, or make the call outside of the capture, or in a stream of its own",
                          device.ordinal()));
}

GpuStream::GpuStream(const CudaDriver& cuda, Priority priority) : cuda_(cuda) {
  int number = 0;
  if (priority == Priority::highest)
    cuda_.check(cuda_.CtxGetStreamPriorityRange(nullptr, &number), "cannot ask for the priorities of CUDA streams");
  cuda_.check(cuda_.StreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, number), "cannot make a CUDA stream");
}

GpuStream::~GpuStream() {
  cuda_.StreamDestroy(stream_);
}

namespace {

bool has_ended(CUresult looked, const CudaDriver& cuda) {
  if (looked == CUDA_ERROR_NOT_READY) return false;
  cuda.check(looked, "the work on the GPU failed");
  return true;
}

}  // namespace

bool GpuStream::done(const BesideCaptures& /*beside*/) const {
  return has_ended(cuda_.StreamQuery(stream_), cuda_);
}

GpuEvent::GpuEvent(const CudaDriver& cuda, Timing timing) : cuda_(cuda) {
  const unsigned flags = timing == Timing::yes ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  cuda_.check(cuda_.EventCreate(&event_, flags), "cannot make a CUDA event");
}

GpuEvent::~GpuEvent() {
  cuda_.EventDestroy(event_);
}

void GpuEvent::record(CUstream stream) {
  cuda_.check(cuda_.EventRecord(event_, stream), "cannot record a CUDA event");
}

bool GpuEvent::record_default() {
  const CUresult result = cuda_.EventRecord(event_, CU_STREAM_LEGACY);
  if (result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_INVALID_CONTEXT) return false;
  cuda_.check(result, "cannot record a CUDA event");
  return true;
}

void GpuEvent::hold_up(CUstream stream) const {
  cuda_.check(cuda_.StreamWaitEvent(stream, event_, CU_EVENT_WAIT_DEFAULT), "cannot order CUDA streams");
}

void GpuEvent::record_all(const GpuDevice& device) {
  if (cuda_.CtxRecordEvent == nullptr)
    throw Error(
        ErrorCode::unavailable,
        fmt::format("the CUDA driver is for CUDA {}.{}, and 12.5 is the oldest that tells when all work of a GPU "
                    "has ended without blocking; update it, or call cudaDeviceSynchronize()",
                    cuda_.version / 1000, cuda_.version % 1000 / 10));
  const CUresult result = cuda_.CtxRecordEvent(device.context(), event_);
  if (result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    throw Error(ErrorCode::unavailable,
                fmt::format("a stream of GPU {} is being captured, and what is recorded never ends; end the capture "
                            "first",
                            device.ordinal()));
  cuda_.check(result, "cannot record a CUDA event");
}

bool GpuEvent::done(const BesideCaptures& /*beside*/) const {
  return has_ended(cuda_.EventQuery(event_), cuda_);
}

double GpuEvent::seconds_since(const GpuEvent& earlier) const {
  float milliseconds = 0;
  const BesideCaptures beside(cuda_);
  cuda_.check(cuda_.EventElapsedTime(&milliseconds, earlier.event_, event_),
              "cannot read the time between CUDA events");
  return static_cast<double>(milliseconds) * 1e-3;
}

GpuMemory::GpuMemory(const CudaDriver& cuda, std::size_t bytes) : cuda_(cuda) {
  const BesideCaptures beside(cuda_);
  cuda_.check(cuda_.MemAlloc(&address_, bytes), "cannot allocate memory of the GPU");
}

GpuMemory::~GpuMemory() {
  const BesideCaptures beside(cuda_);
  cuda_.MemFree(address_);
}

}  // namespace col::nccl_backend
