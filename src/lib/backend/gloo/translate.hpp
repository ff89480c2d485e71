// The only place where exceptions of Gloo become col::Error.
#pragma once

#include <exception>
#include <string_view>

#include <col/error.hpp>
#include <col/job.hpp>

#include "backend/gloo/transport.hpp"

namespace col::gloo_backend {

// A col::Error stays as it is. A failed connection becomes peer_lost and names its rank (a rank of `group`). If the
// job's control page (that of `wait`, which may be null) says why the job ends, the result is that cause.
Error translate(const std::exception_ptr& failure, GuardedContext* context, std::string_view group, WaitContext* wait);

}  // namespace col::gloo_backend
