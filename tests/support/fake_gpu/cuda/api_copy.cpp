// Entry points: copies and fills.
//
// Copies from and to pageable host memory keep the driver's promises: the source is read before the call returns, and
// the destination is written before it returns. Page-locked memory must stay as it is until the copy is done.
#include <cstring>

#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

namespace {

struct End {
  char* bytes;
  bool device;
  bool pageable;
};

enum class Must { anything, device, host };

// Where one end of a copy is; nullopt when the range is not what it must be.
std::optional<End> locate(const Machine& machine, uint64_t address, size_t bytes, Must must) {
  if (machine.device_of(address) >= 0) {
    char* view = machine.memory_of(address)->host_view(address, bytes);
    if (view == nullptr || must == Must::host) return std::nullopt;
    return End{view, true, false};
  }
  const HostRange* range = machine.host.find(address);
  // Page-locked memory has device addresses too, the same as the host's.
  if (range == nullptr && must == Must::device) return std::nullopt;
  if (address == 0) return std::nullopt;
  if (range != nullptr && bytes > range->bytes - (address - range->start)) return std::nullopt;
  return End{reinterpret_cast<char*>(address), false, range == nullptr};
}

CUresult copy(Call& call, End to, End from, size_t bytes, Stream& stream, bool wait) {
  Work work;
  if (from.pageable && stream.capture == nullptr) {
    auto staged = std::make_shared<std::vector<char>>(from.bytes, from.bytes + bytes);
    work = [to, staged] { std::memcpy(to.bytes, staged->data(), staged->size()); };
  } else {
    work = [to, from, bytes] { std::memmove(to.bytes, from.bytes, bytes); };
  }
  auto keep = stream.shared_from_this();
  Ticket ticket;
  const CUresult result = enqueue(call.machine, stream, std::move(work), "a copy", &ticket);
  if (result != CUDA_SUCCESS || stream.capture != nullptr || !(wait || to.pageable)) return result;
  call.machine.wait(call.lock, "a copy", [&] { return ticket.done(); });
  return stream.context()->broken;
}

CUresult copy(Call& call, uint64_t to, Must to_must, uint64_t from, Must from_must, size_t bytes, CUstream handle,
              bool wait) {
  auto stream = find_stream(call.machine, handle, call.context);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == 0) return CUDA_SUCCESS;
  auto destination = locate(call.machine, to, bytes, to_must);
  auto source = locate(call.machine, from, bytes, from_must);
  if (!destination || !source) return CUDA_ERROR_INVALID_VALUE;
  return copy(call, *destination, *source, bytes, *stream, wait);
}

// `count` times the value, from an address that is a multiple of its size.
template <typename Value>
CUresult fill(Call& call, CUdeviceptr to, Value value, size_t count, CUstream handle) {
  auto stream = find_stream(call.machine, handle, call.context);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (count == 0) return CUDA_SUCCESS;
  if (to % sizeof(Value) != 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t bytes = count * sizeof(Value);
  auto end = locate(call.machine, to, bytes, Must::device);
  if (!end) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(
      call.machine, *stream,
      [end, value, count] {
        for (size_t i = 0; i < count; ++i) std::memcpy(end->bytes + i * sizeof value, &value, sizeof value);
      },
      "a fill");
}

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

}  // namespace

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return entry("cuMemcpy", Needs::context,
               [&](Call& call) { return copy(call, to, Must::anything, from, Must::anything, bytes, nullptr, true); });
}

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return entry("cuMemcpyHtoD_v2", Needs::context, [&](Call& call) {
    return copy(call, to, Must::device, address_of(from), Must::host, bytes, nullptr, true);
  });
}

CUresult CUDAAPI cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return entry("cuMemcpyDtoH_v2", Needs::context, [&](Call& call) {
    return copy(call, address_of(to), Must::host, from, Must::device, bytes, nullptr, true);
  });
}

CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return entry("cuMemcpyDtoD_v2", Needs::context,
               [&](Call& call) { return copy(call, to, Must::device, from, Must::device, bytes, nullptr, false); });
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return entry("cuMemcpyAsync", Needs::context,
               [&](Call& call) { return copy(call, to, Must::anything, from, Must::anything, bytes, stream, false); });
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return entry("cuMemcpyHtoDAsync_v2", Needs::context, [&](Call& call) {
    return copy(call, to, Must::device, address_of(from), Must::host, bytes, stream, false);
  });
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return entry("cuMemcpyDtoHAsync_v2", Needs::context, [&](Call& call) {
    return copy(call, address_of(to), Must::host, from, Must::device, bytes, stream, false);
  });
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return entry("cuMemcpyDtoDAsync_v2", Needs::context,
               [&](Call& call) { return copy(call, to, Must::device, from, Must::device, bytes, stream, false); });
}

CUresult CUDAAPI cuMemsetD8(CUdeviceptr to, unsigned char value, size_t bytes) {
  return entry("cuMemsetD8_v2", Needs::context, [&](Call& call) { return fill(call, to, value, bytes, nullptr); });
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  return entry("cuMemsetD8Async", Needs::context, [&](Call& call) { return fill(call, to, value, bytes, stream); });
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return entry("cuMemsetD32Async", Needs::context, [&](Call& call) { return fill(call, to, value, count, stream); });
}
