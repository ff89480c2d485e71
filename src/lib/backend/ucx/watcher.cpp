#include "backend/ucx/watcher.hpp"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <col/error.hpp>

#include "core/blocked_signal.hpp"
#include "core/clock/clock.hpp"

namespace col::ucx_backend {

Watcher::Watcher(int events, std::function<void()> ring)
    : events_(events), ring_(std::move(ring)), end_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!end_)
    throw Error(ErrorCode::resource,
                fmt::format("ucx: no file descriptor left ({}); raise the limit of open files (ulimit -n)",
                            std::generic_category().message(errno)));
  const core::AllSignalsBlocked for_the_new_thread;
  try {
    thread_ = core::Thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::resource,
                fmt::format("ucx: cannot start a thread ({}); raise the limit of processes (ulimit -u)", error.what()));
  }
}

Watcher::~Watcher() {
  state_ = kEnded;
  core::wake_word(state_);
  ::eventfd_write(end_.get(), 1);
  thread_.join();
}

void Watcher::watch() noexcept {
  if (state_.exchange(kWatching) == kIdle) core::wake_word(state_);
}

void Watcher::run() noexcept {
  for (;;) {
    while (state_ == kIdle) core::wait_on_word(state_, kIdle, Deadline::kMaxBudget);
    std::array<pollfd, 2> watched{pollfd{events_, POLLIN, 0}, pollfd{end_.get(), POLLIN, 0}};
    core::poll_for(watched, Deadline::kMaxBudget);
    // Before it rings: a rank that has looked may ask anew at once.
    std::uint32_t expected = kWatching;
    if (!state_.compare_exchange_strong(expected, kIdle)) return;
    ring_();
  }
}

}  // namespace col::ucx_backend
