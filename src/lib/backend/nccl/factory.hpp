// The NCCL backend: connects ranks that have one GPU each.
#pragma once

#include <memory>

#include <col/backend.hpp>

namespace col::nccl_backend {

std::unique_ptr<BackendFactory> make_factory(BackendModule::Environment environment);

}  // namespace col::nccl_backend
