#include "support/fake_gpu/nccl/segment.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "support/fake_gpu/nccl/library.hpp"

namespace fake_nccl {
namespace {

size_t seats_at() {
  return 256;
}

size_t channels_at() {
  return seats_at() + kMostRanks * sizeof(Seat);
}

}  // namespace

Segment::Segment(const std::string& identity, int size) : size_(size) {
  bytes_ = channels_at() + size_t(size) * size * sizeof(Channel);
  path_ = fake_gpu::text_setting("TMPDIR", "/tmp") + "/fake_nccl." + std::to_string(getuid()) + "." + identity;
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) fail(ncclSystemError, "cannot open " + path_ + ": " + std::strerror(errno));
  // Ranks of unequal size would cut each other's file: it only grows.
  const off_t end = lseek(file, 0, SEEK_END);
  bool good = end >= static_cast<off_t>(bytes_) || ftruncate(file, static_cast<off_t>(bytes_)) == 0;
  if (good) memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (!good || memory_ == MAP_FAILED) fail(ncclSystemError, "cannot map " + path_ + ": " + std::strerror(errno));
}

Segment::~Segment() {
  munmap(memory_, bytes_);
}

Seat& Segment::seat(int rank) const {
  return reinterpret_cast<Seat*>(static_cast<char*>(memory_) + seats_at())[rank];
}

Channel& Segment::channel(int from, int to) const {
  return reinterpret_cast<Channel*>(static_cast<char*>(memory_) + channels_at())[from * size_ + to];
}

void Segment::unlink() {
  ::unlink(path_.c_str());
}

void Segment::announce() const {
  head().changes.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &head().changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Segment::wait_for_change(uint32_t seen) const {
  // Bounded, because what stops a wait need not be announced here.
  const timespec moment{0, 10'000'000};
  syscall(SYS_futex, &head().changes, FUTEX_WAIT, seen, &moment, nullptr, 0);
}

bool Segment::wait(const std::string& what, const std::function<bool()>& condition,
                   const std::function<bool()>& stop) const {
  const auto deadline = std::chrono::steady_clock::now() + fake_gpu::longest_wait();
  for (;;) {
    const uint32_t seen = changes();
    if (condition()) return true;
    if (stop()) return false;
    if (std::chrono::steady_clock::now() > deadline) fake_gpu::die(what + " took longer than FAKE_GPU_TIMEOUT");
    wait_for_change(seen);
  }
}

}  // namespace fake_nccl
