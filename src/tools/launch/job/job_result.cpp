#include "launch/job/job_result.hpp"

#include <sys/wait.h>

#include "common/exit_codes.hpp"

namespace col::launch {

int exit_code_of(const RankStatus& status) noexcept {
  if (WIFSIGNALED(status.wait_status)) return tools::exit_code::kSignalBase + WTERMSIG(status.wait_status);
  return WEXITSTATUS(status.wait_status);
}

}  // namespace col::launch
