// The shared-memory backend as the registry sees it.
#pragma once

#include <memory>

#include <col/backend.hpp>

namespace col::shm_backend {

std::unique_ptr<BackendFactory> make_factory();

}  // namespace col::shm_backend
