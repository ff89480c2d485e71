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

namespace col::ucx_backend {

Watcher::Watcher(int events, std::function<void()> ring)
    : events_(events), ring_(std::move(ring)), end_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!end_)
    throw Error(ErrorCode::resource,
                fmt::format("ucx: no file descriptor left ({}); raise the limit of open files (ulimit -n)",
                            std::generic_category().message(errno)));
  const core::AllSignalsBlocked for_the_new_thread;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::resource,
                fmt::format("ucx: cannot start a thread ({}); raise the limit of processes (ulimit -u)", error.what()));
  }
}

Watcher::~Watcher() {
  state_ = State::ended;
  state_.notify_one();
  ::eventfd_write(end_.get(), 1);
  thread_.join();
}

void Watcher::watch() noexcept {
  if (state_.exchange(State::watching) == State::idle) state_.notify_one();
}

void Watcher::run() noexcept {
  for (;;) {
    state_.wait(State::idle);
    std::array<pollfd, 2> watched{pollfd{events_, POLLIN, 0}, pollfd{end_.get(), POLLIN, 0}};
    ::poll(watched.data(), watched.size(), -1);
    // Before it rings: a rank that has looked may ask anew at once.
    State expected = State::watching;
    if (!state_.compare_exchange_strong(expected, State::idle)) return;
    ring_();
  }
}

}  // namespace col::ucx_backend
