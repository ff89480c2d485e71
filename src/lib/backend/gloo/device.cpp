#include "backend/gloo/device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <col/error.hpp>

#include "backend/gloo/signals.hpp"

namespace col::gloo_backend {
namespace {

constexpr long kFastTickNs = 500'000;

template <class Device>
constexpr bool listens_itself() {
  return requires {
    &Device::isInitiator;
  };
}

// Devices that no group uses. In a forked child, the devices of the parent are dead, because their threads do not exist
// there.
struct Idle {
  std::mutex mutex;
  std::vector<std::pair<pid_t, LoopDevice*>> devices;
};

Idle& idle_devices() {
  static auto* const idle = new Idle;  // never destroyed, like the devices
  return *idle;
}

LoopDevice* take_idle(const ::gloo::transport::tcp::attr& attr) {
  Idle& idle = idle_devices();
  const std::lock_guard lock(idle.mutex);
  const auto found = std::find_if(idle.devices.begin(), idle.devices.end(), [&](const auto& entry) {
    return entry.first == getpid() &&
           std::memcmp(&entry.second->attributes().ai_addr, &attr.ai_addr, sizeof(attr.ai_addr)) == 0;
  });
  if (found == idle.devices.end()) return nullptr;
  LoopDevice* const device = found->second;
  idle.devices.erase(found);
  return device;
}

std::shared_ptr<LoopDevice> lend(LoopDevice* device) {
  return std::shared_ptr<LoopDevice>(device, [](LoopDevice* returned) {
    returned->ticker().stop();
    Idle& idle = idle_devices();
    const std::lock_guard lock(idle.mutex);
    idle.devices.emplace_back(getpid(), returned);
  });
}

}  // namespace

const bool LoopDevice::kOutlivesGroups = listens_itself<::gloo::transport::tcp::Device>();

Ticker::Ticker() : fd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (fd_ < 0) {
    const int error = errno;
    const auto code = error == EMFILE || error == ENFILE ? ErrorCode::resource : ErrorCode::io;
    throw Error(code,
                fmt::format("gloo: cannot create a timer descriptor: {}; raise the limit of open files (ulimit -n)",
                            std::strerror(error)));
  }
}

Ticker::~Ticker() {
  close(fd_);
}

void Ticker::handleEvents(int /*events*/) {
  std::uint64_t expirations = 0;
  // Nothing to do with the count, and EAGAIN (the timer was just stopped) is fine: being called is the purpose.
  [[maybe_unused]] const ssize_t got = ::read(fd_, &expirations, sizeof(expirations));
}

void Ticker::set_period(long nanoseconds) noexcept {
  itimerspec spec{};
  spec.it_value.tv_nsec = nanoseconds;
  spec.it_interval.tv_nsec = nanoseconds;
  timerfd_settime(fd_, 0, &spec, nullptr);
}

void Ticker::start() noexcept {
  set_period(kFastTickNs);
}
void Ticker::stop() noexcept {
  set_period(0);
}

LoopDevice::LoopDevice(const ::gloo::transport::tcp::attr& attr) : ::gloo::transport::tcp::Device(attr) {
  registerDescriptor(ticker().fd(), EPOLLIN, &ticker());
}

std::shared_ptr<LoopDevice> LoopDevice::create(const ::gloo::transport::tcp::attr& attr) {
  if (LoopDevice* const idle = kOutlivesGroups ? take_idle(attr) : nullptr; idle != nullptr) return lend(idle);
  const AllSignalsBlocked for_the_new_thread;
  if (kOutlivesGroups) return lend(new LoopDevice(attr));
  return std::make_shared<LoopDevice>(attr);
}

}  // namespace col::gloo_backend
