// Memory of GPUs, which no case looks at yet.
#pragma once

#include <string>

#include <col/group.hpp>

namespace col::colcheck {

// Why it is not checked here.
inline std::string why_no_gpus() {
  const std::string reason = nccl_unavailable_reason();
  return reason.empty() ? "colcheck does not look at memory of GPUs yet" : reason;
}

}  // namespace col::colcheck
