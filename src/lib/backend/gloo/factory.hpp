// The Gloo backend as the registry sees it. No Gloo header here.
#pragma once

#include <memory>

#include <col/backend.hpp>

namespace col::gloo_backend {

std::unique_ptr<BackendFactory> make_factory();

}  // namespace col::gloo_backend
