// Asks for descriptors before the first of many is needed: where one is missing later, a library ends the process, or
// all ranks wait.
#pragma once

#include <sys/eventfd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/unique_fd.hpp"

namespace col::backend {

// Nothing if this process can open so many descriptors more. Else how many, why not more, and what to do. They are
// opened for it: /proc, which would say how many there are, may be missing.
inline std::optional<std::string> why_few_descriptors(std::size_t wanted) {
  std::vector<core::UniqueFd> held;
  while (held.size() < wanted) {
    core::UniqueFd one(::eventfd(0, EFD_CLOEXEC));
    if (one) {
      held.push_back(std::move(one));
      continue;
    }
    const int error = errno;
    return fmt::format("this process can open {} more ({}); {}", held.size(), std::strerror(error),
                       error == EMFILE ? "raise the limit of open files (ulimit -n), or close some"
                                       : "the limit is the system's: end other programs");
  }
  return std::nullopt;
}

}  // namespace col::backend
