#include "launch/place/core_locks.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include "core/clock/clock.hpp"

namespace col::launch {
namespace {

using Clock = core::Clock;

constexpr std::chrono::milliseconds kMostAtDoor{100};  // a launcher is there for a fraction of one
constexpr std::chrono::microseconds kPause{500};

// An open directory with its lock; none if another process holds that (error 0), or if it cannot be had (error).
struct Tried {
  tools::UniqueFd fd;
  int error = 0;
};

Tried try_lock(const std::string& directory) {
  tools::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return {.fd = {}, .error = errno};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return {.fd = std::move(fd)};
  return {.fd = {}, .error = errno == EWOULDBLOCK ? 0 : errno};
}

Tried lock_until(const std::string& directory, Clock::time_point latest) {
  for (;; core::sleep_for(kPause)) {
    Tried tried = try_lock(directory);
    if (tried.fd || tried.error != 0) return tried;
    if (Clock::now() >= latest) return {.fd = {}, .error = ETIMEDOUT};
  }
}

}  // namespace

std::vector<Core> CoreLocks::take(std::span<const Core> cores) {
  const std::string directory = sys_ + "/devices/system/cpu";
  Tried door = lock_until(directory, Clock::now() + kMostAtDoor);
  error_ = door.error;
  door_ = std::move(door.fd);
  std::vector<Core> taken;
  for (const Core& core : cores) {
    if (error_ != 0) break;
    Tried tried = try_lock(fmt::format("{}/cpu{}", directory, core.first_cpu));
    error_ = tried.error;
    if (!tried.fd) continue;
    taken.push_back(core);
    locks_.emplace_back(core, std::move(tried.fd));
  }
  if (error_ == 0) return taken;
  locks_.clear();
  door_.reset();
  return {};
}

void CoreLocks::keep(std::span<const int> cpus) {
  std::erase_if(locks_, [&](const auto& lock) {
    return std::ranges::none_of(lock.first.cpus, [&](int cpu) { return std::ranges::binary_search(cpus, cpu); });
  });
  door_.reset();
}

}  // namespace col::launch
