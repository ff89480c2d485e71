#include "backend/nccl/cuda_driver.hpp"

#include <fmt/format.h>

#include <col/error.hpp>

namespace col::nccl_backend {
namespace {

constexpr int kOldestDriver = 12000;
constexpr int kRecordsContexts = 12050;

}  // namespace

CudaDriver::CudaDriver() {
  const CUresult started = Init(0);
  if (started == CUDA_ERROR_NO_DEVICE) throw Error(ErrorCode::unavailable, "the CUDA driver sees no device");
  if (started != CUDA_SUCCESS)
    throw Error(ErrorCode::unavailable, fmt::format("the CUDA driver does not start: {}", describe(started)));
  check(DriverGetVersion(&version), "cannot ask the CUDA driver for its version");
  if (version < kOldestDriver)
    throw Error(ErrorCode::unavailable,
                fmt::format("the CUDA driver is for CUDA {}.{}, and {}.{} is the oldest that serves; update it",
                            version / 1000, version % 1000 / 10, kOldestDriver / 1000, kOldestDriver % 1000 / 10));
  if (version >= kRecordsContexts) CtxRecordEvent = library.find("cuCtxRecordEvent");
  check(DeviceGetCount(&devices), "cannot count the CUDA devices");
  if (devices < 1)
    throw Error(ErrorCode::unavailable, "the CUDA driver sees no device; see CUDA_VISIBLE_DEVICES and nvidia-smi");
}

std::string CudaDriver::describe(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    return fmt::format("error {}", static_cast<int>(result));
  if (GetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) return name;
  return fmt::format("{} ({})", name, text);
}

void CudaDriver::check(CUresult result, std::string_view doing) const {
  switch (result) {
    case CUDA_SUCCESS:
      return;
    case CUDA_ERROR_OUT_OF_MEMORY:
      throw Error(ErrorCode::resource,
                  fmt::format("{}: {}; free memory of the device, or use smaller buffers", doing, describe(result)));
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
      throw Error(ErrorCode::unavailable,
                  fmt::format("{}: {}; the process was forked after CUDA had started (start it anew instead), or is "
                              "ending",
                              doing, describe(result)));
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      throw Error(ErrorCode::unavailable, fmt::format("{}: {}", doing, describe(result)));
    default:
      throw Error(ErrorCode::io, fmt::format("{}: {}; an earlier kernel of the program may be the cause "
                                             "(compute-sanitizer finds it), or the device (dmesg)",
                                             doing, describe(result)));
  }
}

}  // namespace col::nccl_backend
