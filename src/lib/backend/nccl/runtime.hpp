// CUDA and NCCL, once both have been found.
#pragma once

#include "backend/nccl/cuda_driver.hpp"
#include "backend/nccl/nccl_library.hpp"

namespace col::nccl_backend {

struct Runtime {
  explicit Runtime(const BackendModule::Environment& environment) : nccl(environment) {}

  const CudaDriver cuda;
  const NcclLibrary nccl;
};

}  // namespace col::nccl_backend
