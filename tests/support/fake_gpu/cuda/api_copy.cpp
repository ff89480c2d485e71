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

// Where one end of a copy is; nullopt when the range is in no memory.
std::optional<End> locate(const Machine& machine, uint64_t address, size_t bytes) {
  if (machine.device_of(address) >= 0) {
    char* view = machine.memory_of(address)->host_view(address, bytes);
    if (view == nullptr) return std::nullopt;
    return End{view, true, false};
  }
  const HostRange* range = machine.host.find(address);
  if (address == 0) return std::nullopt;
  if (range != nullptr && bytes > range->bytes - (address - range->start)) return std::nullopt;
  return End{reinterpret_cast<char*>(address), false, range == nullptr};
}

// What is written is of no use before the write has ended: a look that is not ordered after it finds this.
void spoil(const End& end, size_t bytes) {
  if (!harsh()) return;
  std::memset(end.bytes, 0x5B, bytes);
  pause_at_random();
}

CUresult copy(Call& call, uint64_t destination, uint64_t source, size_t bytes, CUstream handle) {
  auto stream = stream_of(call, handle);
  if (bytes == 0) return CUDA_SUCCESS;
  auto to = locate(call.machine, destination, bytes);
  auto from = locate(call.machine, source, bytes);
  if (!to || !from) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  if (from->pageable && stream->capture == nullptr) {
    auto staged = std::make_shared<std::vector<char>>(from->bytes, from->bytes + bytes);
    work = [to, staged] {
      spoil(*to, staged->size());
      std::memcpy(to->bytes, staged->data(), staged->size());
    };
  } else {
    work = [to, from, bytes] {
      const bool apart = to->bytes + bytes <= from->bytes || from->bytes + bytes <= to->bytes;
      if (apart) spoil(*to, bytes);
      std::memmove(to->bytes, from->bytes, bytes);
    };
  }
  Ticket ticket;
  fail_on(enqueue(call.machine, *stream, std::move(work), to->device ? kCopyToDevice : "a copy", &ticket));
  if (stream->capture != nullptr || !to->pageable) return CUDA_SUCCESS;
  call.machine.wait(call.lock, "a copy", [&] { return ticket.done(); });
  return stream->context()->broken;
}

// `count` times the value, from an address that is a multiple of its size.
template <typename Value>
CUresult fill(Call& call, CUdeviceptr to, Value value, size_t count, CUstream handle) {
  auto stream = stream_of(call, handle);
  if (count == 0) return CUDA_SUCCESS;
  if (to % sizeof(Value) != 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t bytes = count * sizeof(Value);
  auto end = locate(call.machine, to, bytes);
  if (!end || end->pageable) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(
      call.machine, *stream,
      [end, value, count, bytes] {
        spoil(*end, bytes);
        for (size_t i = 0; i < count; ++i) std::memcpy(end->bytes + i * sizeof value, &value, sizeof value);
      },
      "a fill");
}

}  // namespace

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return entry("cuMemcpyAsync", Needs::context, [&](Call& call) { return copy(call, to, from, bytes, stream); });
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  return entry("cuMemsetD8Async", Needs::context, [&](Call& call) { return fill(call, to, value, bytes, stream); });
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return entry("cuMemsetD32Async", Needs::context, [&](Call& call) { return fill(call, to, value, count, stream); });
}
