// Gloo's event loop: one thread with one epoll descriptor, which serves the connections of one group.
#pragma once

#include <memory>

#include <gloo/transport/tcp/attr.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/loop.h>

namespace col::gloo_backend {

// A timer in the event loop. Gloo waits for a turn of the loop each time it releases a socket (once for each connection
// that is made or closed). An idle loop turns every 10 ms. While the ticker runs, the loop turns every half
// millisecond.
class Ticker final : public ::gloo::transport::tcp::Handler {
 public:
  Ticker();  // throws Error: resource if the process has no descriptors left
  ~Ticker() override;
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  int fd() const noexcept { return fd_; }
  void start() noexcept;
  void stop() noexcept;
  void handleEvents(int events) override;

 private:
  void set_period(long nanoseconds) noexcept;
  int fd_;
};

namespace detail {
struct TickerHolder {
  Ticker ticker;
};
}  // namespace detail

// A Gloo device whose thread takes no signals, and whose loop can be made to turn fast.
//
// Each group has its own device. A shared one would save one thread for each group. But two groups used by two threads
// would wait for each other, and a half-made connection could not be removed while others use the loop.
//
// Newer versions of Gloo listen once for each device. A stranger's connection then keeps the loop alive. If this
// connection ended last, the loop's thread would join itself. So with these versions a device is never destroyed, but
// waits for the next group.
//
// The ticker is the first base, because it must outlive the loop's thread, which ~Device joins.
class LoopDevice final : private detail::TickerHolder, public ::gloo::transport::tcp::Device {
 public:
  static const bool kOutlivesGroups;

  static std::shared_ptr<LoopDevice> create(const ::gloo::transport::tcp::attr& attr);
  explicit LoopDevice(const ::gloo::transport::tcp::attr& attr);

  Ticker& ticker() noexcept { return detail::TickerHolder::ticker; }
  const ::gloo::transport::tcp::attr& attributes() const noexcept { return attr_; }
};

}  // namespace col::gloo_backend
