// CUDA and NCCL, looked up at the first request.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "backend/nccl/cuda_driver.hpp"
#include "backend/nccl/device_memory.hpp"
#include "backend/nccl/nccl_library.hpp"

namespace col::nccl_backend {

// Something that this machine may not have. Thread safe.
template <class T>
class Lazy {
 public:
  // `make` returns a unique_ptr<T>, or throws an Error that says why there is none. Every get() then throws this error.
  template <class Make>
  T& get(Make make) {
    std::call_once(once_, [&] {
      try {
        value_ = make();
      } catch (const Error& error) {
        why_not_ = error;
      }
    });
    if (why_not_) throw *why_not_;
    return *value_;
  }

 private:
  std::once_flag once_;  // guards what follows
  std::unique_ptr<T> value_;
  std::optional<Error> why_not_;
};

// Each function throws unavailable if the library is not found.
class Runtime {
 public:
  explicit Runtime(BackendModule::Environment environment) : environment_(std::move(environment)) {}

  const CudaDriver& cuda() {
    return cuda_.get([] { return std::make_unique<CudaDriver>(); });
  }
  const NcclLibrary& nccl() {
    return nccl_.get([this] { return std::make_unique<NcclLibrary>(environment_); });
  }
  CudaMemory& memory() {
    return memory_.get([this] { return std::make_unique<CudaMemory>(cuda()); });
  }

 private:
  const BackendModule::Environment environment_;
  Lazy<CudaDriver> cuda_;
  Lazy<NcclLibrary> nccl_;
  Lazy<CudaMemory> memory_;
};

}  // namespace col::nccl_backend
