// The one place where what Gloo throws becomes a col::Error.
#pragma once

#include <exception>
#include <string_view>

#include <col/error.hpp>
#include <col/job.hpp>

#include "backend/gloo/transport.hpp"

namespace col::gloo_backend {

// A col::Error stays itself. The failure of a connection becomes peer_lost naming its rank (a rank of `group`), or,
// when the job's control page (that of `wait`, which may be null) says why the job ends, that cause.
Error translate(const std::exception_ptr& failure, GuardedContext* context, std::string_view group, WaitContext* wait);

// Gloo's words on one line without its source position, to be put in brackets behind ours.
std::string foreign_text(std::string_view what);

}  // namespace col::gloo_backend
