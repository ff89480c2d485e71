#include "launch/shared_report.hpp"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <type_traits>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/launch_error.hpp"

namespace col::launch {

static_assert(std::is_trivially_copyable_v<RankStatus>);

struct SharedReport::Header {
  std::atomic<bool> complete;  // release by publish, acquire by read: what lies behind it is whole
  int exit_code;
  int signal;
  int culprit;
  std::size_t error_bytes;
  char error[1024];
};

SharedReport::SharedReport(int ranks)
    : rank_count_(static_cast<std::size_t>(ranks)), bytes_(sizeof(Header) + rank_count_ * sizeof(RankStatus)) {
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw LaunchError(
        tools::exit_code::kLauncher,
        fmt::format("cannot get {} bytes of shared memory: {}; use fewer ranks", bytes_, strerror(errno)));
  }
  header_ = new (memory) Header{};
  ranks_ = new (static_cast<char*>(memory) + sizeof(Header)) RankStatus[rank_count_];
}

SharedReport::~SharedReport() {
  ::munmap(header_, bytes_);
}

void SharedReport::publish(const JobResult& result) noexcept {
  header_->exit_code = result.exit_code;
  header_->signal = result.signal;
  header_->culprit = result.culprit;
  header_->error_bytes = result.error.copy(header_->error, sizeof header_->error);
  std::copy_n(result.ranks.begin(), std::min(rank_count_, result.ranks.size()), ranks_);
  header_->complete.store(true, std::memory_order_release);
}

bool SharedReport::read(JobResult& result) const {
  if (!header_->complete.load(std::memory_order_acquire)) return false;
  result.exit_code = header_->exit_code;
  result.signal = header_->signal;
  result.culprit = header_->culprit;
  result.error.assign(header_->error, header_->error_bytes);
  result.ranks.assign(ranks_, ranks_ + rank_count_);
  return true;
}

}  // namespace col::launch
