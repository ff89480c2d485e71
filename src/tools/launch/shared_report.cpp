#include "launch/shared_report.hpp"

#include <string.h>
#include <sys/mman.h>

#include <cerrno>
#include <new>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"

namespace col::launch {

struct SharedReport::Header {
  std::atomic<bool> complete;  // release by publish, acquire by read: the data after it is complete
  int exit_code;
  int signal;
  EndCause cause;
  int culprit;
  std::size_t error_bytes;
  char error[1024];
};

SharedReport::SharedReport() {
  void* memory = ::mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw LaunchError(tools::exit_code::kLauncher, fmt::format("cannot get shared memory: {}", strerror(errno)));
  header_ = new (memory) Header{};
}

SharedReport::~SharedReport() {
  ::munmap(header_, sizeof(Header));
}

void SharedReport::publish(const JobResult& result) noexcept {
  header_->exit_code = result.exit_code;
  header_->signal = result.signal;
  header_->cause = result.cause;
  header_->culprit = result.culprit;
  header_->error_bytes = result.error.copy(header_->error, sizeof header_->error);
  header_->complete.store(true, std::memory_order_release);
}

bool SharedReport::read(JobResult& result) const {
  if (!header_->complete.load(std::memory_order_acquire)) return false;
  result.exit_code = header_->exit_code;
  result.signal = header_->signal;
  result.cause = header_->cause;
  result.culprit = header_->culprit;
  result.error.assign(header_->error, header_->error_bytes);
  return true;
}

}  // namespace col::launch
